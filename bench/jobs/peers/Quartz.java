// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import org.quartz.Job;
import org.quartz.JobExecutionContext;
import org.quartz.Scheduler;
import org.quartz.impl.StdSchedulerFactory;

/**
 * A node of a cluster of Quartz: Quartz PORT DATABASE THREADS. When it is told to end, it prints how
 * late each run began, in ms, the earliest first; and before that, when the last one began.
 */
public class Quartz {
	private static final List<Long> late = new ArrayList<>();
	private static long last;

	public static class Nothing implements Job {
		public void execute(JobExecutionContext run) {
			long now = System.currentTimeMillis();

			synchronized (late) {
				late.add(now - run.getScheduledFireTime().getTime());
				last = now;
			}
		}
	}

	/** Runs until its node dies. On the node that takes it over it is over at once. */
	public static class Long_ implements Job {
		public void execute(JobExecutionContext run) {
			System.out.println(run.isRecovering() ? "again" : "began");
			System.out.flush();
			try {
				Thread.sleep(run.isRecovering() ? 0 : 600000);
			} catch (InterruptedException e) {
				return;
			}
		}
	}

	private static void report() {
		synchronized (late) {
			Collections.sort(late);
			System.out.println(last);
			for (long ms : late)
				System.out.println(ms);
			System.out.flush();
		}
	}

	public static void main(String[] args) throws Exception {
		String[][] settings = {
			{"scheduler.instanceName", "bench"},
			{"scheduler.instanceId", "AUTO"},
			{"scheduler.skipUpdateCheck", "true"},
			{"scheduler.batchTriggerAcquisitionMaxCount", args[2]},
			{"threadPool.class", "org.quartz.simpl.SimpleThreadPool"},
			{"threadPool.threadCount", args[2]},
			{"jobStore.class", "org.quartz.impl.jdbcjobstore.JobStoreTX"},
			{"jobStore.driverDelegateClass", "org.quartz.impl.jdbcjobstore.PostgreSQLDelegate"},
			{"jobStore.dataSource", "pg"},
			{"jobStore.isClustered", "true"},
			{"jobStore.acquireTriggersWithinLock", "true"},
			{"jobStore.misfireThreshold", "600000"},
			{"dataSource.pg.provider", "hikaricp"},
			{"dataSource.pg.driver", "org.postgresql.Driver"},
			{"dataSource.pg.URL", "jdbc:postgresql://127.0.0.1:" + args[0] + "/" + args[1]},
			{"dataSource.pg.user", "postgres"},
			{"dataSource.pg.password", "-"},
			{"dataSource.pg.maxConnections", "" + (Integer.parseInt(args[2]) + 3)},
		};
		Properties properties = new Properties();

		for (String[] setting : settings)
			properties.setProperty("org.quartz." + setting[0], setting[1]);
		Scheduler scheduler = new StdSchedulerFactory(properties).getScheduler();
		Runtime.getRuntime().addShutdownHook(new Thread(Quartz::report));
		scheduler.start();
	}
}
