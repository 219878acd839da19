// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
// pg-boss: boss.js URL make | run | now N. "make" makes its tables and a queue. "run" works until it is told to
// end; then it prints when the last run began, and how late each was, in ms, the least first. "now" asks for N
// jobs one after the other, each when the one before has begun, and prints how long that took in the same way.
const PgBoss = require('pg-boss')
const WORKERS = 4, BATCH = 500

async function main (url, what, n) {
  const boss = new PgBoss({ connectionString: url, max: WORKERS + 2, monitorStateIntervalSeconds: 600 })
  const late = []
  let last = 0, begun = () => {}
  const report = () => {
    late.sort((a, b) => a - b)
    process.stdout.write([last, ...late].join('\n') + '\n', () => process.exit(0))
  }

  boss.on('error', error => { console.error(error); process.exit(1) })
  await boss.start()
  await boss.createQueue('nothing', { retryLimit: 0 })
  if (what === 'make') return boss.stop({ graceful: false })
  process.on('SIGTERM', report)
  for (let i = 0; i < WORKERS; i++) {
    // A full batch asks for the next one at once; otherwise it polls as often as it may.
    const id = await boss.work('nothing', { batchSize: BATCH, pollingIntervalSeconds: 0.5 }, async jobs => {
      last = Date.now()
      for (const job of jobs) late.push(last - job.data.at)
      if (jobs.length === BATCH) boss.notifyWorker(id)
      begun()
    })
  }
  for (let i = 0; i < Number(n); i++) {
    const wait = new Promise(resolve => { begun = resolve })
    await boss.send('nothing', { at: Date.now() })
    await wait
  }
  if (n) report()
}

main(...process.argv.slice(2))
