// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
// graphile-worker: graphile.js URL make | run | now N, as boss.js has them.
const { run, runMigrations, Logger } = require('graphile-worker')
const logger = new Logger(() => () => {})

async function main (url, what, n) {
  const late = []
  let last = 0, begun = () => {}
  const report = () => {
    late.sort((a, b) => a - b)
    process.stdout.write([last, ...late].join('\n') + '\n', () => process.exit(0))
  }

  if (what === 'make') return runMigrations({ connectionString: url, logger })
  process.on('SIGTERM', report)
  const runner = await run({
    logger,
    noHandleSignals: true,
    preset: {
      worker: {
        connectionString: url,
        concurrentJobs: 24,
        maxPoolSize: 10,
        pollInterval: 500,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0
      }
    },
    taskList: {
      nothing: async payload => {
        last = Date.now()
        late.push(last - payload.at)
        begun()
      }
    }
  })
  for (let i = 0; i < Number(n); i++) {
    const wait = new Promise(resolve => { begun = resolve })
    await runner.addJob('nothing', { at: Date.now() })
    await wait
  }
  if (n) report()
}

main(...process.argv.slice(2))
