// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
// Netty's HashedWheelTimer on the loads of load.c. It has a thread and a clock of its own: the
// caller only queues, and the worker sorts into buckets at its next tick. So add and
// cancel are the caller's CPU time, and expire is all of the worker's, from the first add
// until the last timer has fired. Its tick is a millisecond at least, so that expiry is measured
// for delays of 1..60000 ticks alone, once, which takes a minute; the worst single
// advance cannot be seen from outside.
//
// "netty" has 512 slots, as it has unless told otherwise: a timer is looked at once in each round.
// "netty-slots" has a slot for each tick of the longest delay, so that there is one round.
//
//	java -cp netty-common.jar NettyWheel.java NMAX REPS

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

public class NettyWheel {
	static final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
	static final long START = 45296, MS = 1000000;
	static Thread worker;
	static long state;

	static long rnd() {		// splitmix64, as in load.c
		long z = state += 0x9e3779b97f4a7c15L;

		z = (z ^ z >>> 30) * 0xbf58476d1ce4e5b9L;
		z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
		return z ^ z >>> 31;
	}

	static int below(long n) {
		return (int)Long.remainderUnsigned(rnd(), n);
	}

	static int[] delays(int n, int range) {
		int[] delay = new int[n];

		for (int i = 0; i < n; i++)
			delay[i] = 1 + below(range);
		return delay;
	}

	static int[] permutation(int n) {
		int[] order = new int[n];

		for (int i = 0; i < n; i++) {
			int j = below(i + 1);

			order[i] = order[j];
			order[j] = i;
		}
		return order;
	}

	static int slots;

	static HashedWheelTimer wheel() {
		return new HashedWheelTimer(task -> worker = new Thread(task), 1, TimeUnit.MILLISECONDS, slots);
	}

	static void tsv(String load, int n, String metric, String unit, double... values) {
		StringBuilder text = new StringBuilder();

		for (double value : values)
			text.append(text.length() > 0 ? " " : "")
				.append(String.format(value == Math.rint(value) ? "%.0f" : "%.2f", value));
		System.out.printf("native\t%s\t%d\t%s\t%s\t%s\t%s%n", load, n, slots == 512 ? "netty" : "netty-slots",
				  metric, unit, text);
	}

	static void add(HashedWheelTimer wheel, TimerTask task, int[] delay, Timeout[] timeouts, long later) {
		for (int i = 0; i < delay.length; i++)
			timeouts[i] = wheel.newTimeout(task, later + delay[i], TimeUnit.MILLISECONDS);
	}

	static void tsvTimes(String load, int n, String metric, long[] ns) {
		tsv(load, n, metric, "ns", Arrays.stream(ns).mapToDouble(t -> (double)t / n).toArray());
	}

	// Nothing fires: all deadlines are an hour away.
	static void cancelled(String load, int[] delay, int[] order, int reps) {
		int n = delay.length;
		long[] add = new long[reps], cancel = new long[reps];

		// The compiler is warm after some 200 000.
		for (int rep = -2 - 200000 / n; rep < reps; rep++) {
			HashedWheelTimer wheel = wheel();
			Timeout[] timeouts = new Timeout[n];
			long t0 = threads.getCurrentThreadCpuTime(), t1, t2;

			add(wheel, t -> { }, delay, timeouts, 3600000);
			t1 = threads.getCurrentThreadCpuTime();
			for (int i : order)
				if (!timeouts[i].cancel())
					throw new AssertionError("a timer could not be cancelled");
			t2 = threads.getCurrentThreadCpuTime();
			wheel.stop();
			if (rep >= 0) {
				add[rep] = t1 - t0;
				cancel[rep] = t2 - t1;
			}
		}
		tsvTimes(load, n, "add", add);
		tsvTimes(load, n, "cancel", cancel);
	}

	// The workers of wheels that were stopped hold these for a while.
	static long used() throws InterruptedException {
		for (int i = 0; i < 5; i++) {
			System.gc();
			Thread.sleep(100);
		}
		return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
	}

	static void expired(String load, int[] delay) throws InterruptedException {
		int n = delay.length;
		long[] due = new long[1];
		long before = used(), zero, ns;
		AtomicLong sum = new AtomicLong(), late = new AtomicLong();
		CountDownLatch left = new CountDownLatch(n);
		HashedWheelTimer wheel = wheel();
		Timeout[] timeouts = new Timeout[n];

		wheel.start();
		zero = System.nanoTime() + 5000L * n;	// when all are armed
		for (int i = 0; i < n; i++) {
			long tick = delay[i];

			timeouts[i] = wheel.newTimeout(t -> {
				sum.addAndGet(START + tick);
				late.accumulateAndGet((System.nanoTime() - zero) / MS - tick, Math::max);
				left.countDown();
			}, tick * MS - (System.nanoTime() - zero), TimeUnit.NANOSECONDS);
		}
		tsv(load, n, "memory", "bytes", (double)(used() - before) / n);
		left.await();
		ns = threads.getThreadCpuTime(worker.getId());
		wheel.stop();
		tsv(load, n, "expire", "ns", (double)ns / n);
		tsv(load, n, "late", "ticks", late.get());
		tsv(load, n, "checksum", "ticks", sum.get());
	}

	public static void main(String[] args) throws InterruptedException {
		int nmax = Integer.parseInt(args[0]), reps = Integer.parseInt(args[1]);

		for (int range : new int[] { 60000, 1000000 })
			for (int n = 1000; n <= nmax; n *= 10)
				for (int of : new int[] { 512, 2 * Integer.highestOneBit(range - 1) })
					load(range, n, of, n == nmax, reps);
	}

	static void load(int range, int n, int of, boolean last, int reps) throws InterruptedException {
		int[] delay, order;

		slots = of;
		state = n;
		delay = delays(n, range);
		order = permutation(n);
		cancelled("1.." + range, delay, order, reps);
		if (range == 60000 && last)
			expired("1.." + range, delay);
	}
}
