// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A table of sessions that end when they are idle: what most timers in a kernel are for.
 * The life of a session shows each call one needs:
 *
 *	create	twheel_init_on(), twheel_add()
 *	touch	twheel_mod_pending(): put the end off, unless it has come
 *	delete	twheel_cancel_sync(), then free
 *	idle	the callback removes the session and frees it
 *	exit	twheel_drain(), then twheel_destroy()
 *
 * The point to get right is who frees a session: the CPU that takes it out of the table. That
 * happens under the table's lock, so only one can:
 *
 *	CPU 0: session_delete()			CPU 1: the timer has expired
 *	lock, take it out of the table, unlock
 *						lock: not in the table, leave it, unlock
 *	twheel_cancel_sync() waits for CPU 1
 *	free
 *
 * The callback takes the lock, so twheel_cancel_sync() is called without it.
 *
 * Try it: echo create 7 > /sys/kernel/debug/twheel_sessions; then cat that file.
 */
#include <linux/debugfs.h>
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "twheel.h"

static unsigned int idle_ms = 30000;
module_param(idle_ms, uint, 0644);
MODULE_PARM_DESC(idle_ms, "end a session after so many ms without a touch");

struct session {
	struct hlist_node	node;
	struct twheel_timer	idle;
	u32			id;
};

static DEFINE_HASHTABLE(sessions, 10);
static DEFINE_SPINLOCK(sessions_lock);		/* the table, and who is in it */
static struct twheel_base *base;
static struct dentry *file;

static ktime_t idle_time(void)
{
	return (u64)READ_ONCE(idle_ms) * NSEC_PER_MSEC;
}

static struct session *session_find(u32 id)
{
	struct session *s;

	lockdep_assert_held(&sessions_lock);
	hash_for_each_possible(sessions, s, node, id)
		if (s->id == id)
			return s;
	return NULL;
}

/* Take @s out of the table. Returns true if it was there: then the caller frees it. */
static bool session_remove(struct session *s)
{
	bool mine;

	spin_lock_bh(&sessions_lock);
	mine = hash_hashed(&s->node);
	hash_del(&s->node);
	spin_unlock_bh(&sessions_lock);
	return mine;
}

static void session_idle(struct twheel_timer *timer)
{
	struct session *s = container_of(timer, struct session, idle);

	if (session_remove(s))
		kfree(s);
}

static int session_create(u32 id)
{
	struct session *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int err = -EEXIST;

	if (!s)
		return -ENOMEM;
	s->id = id;
	twheel_init_on(base, &s->idle, session_idle);

	spin_lock_bh(&sessions_lock);
	if (!session_find(id)) {
		hash_add(sessions, &s->node, id);
		twheel_add(&s->idle, idle_time());
		err = 0;
	}
	spin_unlock_bh(&sessions_lock);
	if (err)
		kfree(s);
	return err;
}

/* A session whose end has come is gone, even if its callback has not got the lock yet. */
static int session_touch(u32 id)
{
	struct session *s;
	int err = -ENOENT;

	spin_lock_bh(&sessions_lock);
	s = session_find(id);
	if (s && twheel_mod_pending(&s->idle, idle_time()))
		err = 0;
	spin_unlock_bh(&sessions_lock);
	return err;
}

static int session_delete(u32 id)
{
	struct session *s;

	spin_lock_bh(&sessions_lock);
	s = session_find(id);
	if (s)
		hash_del(&s->node);
	spin_unlock_bh(&sessions_lock);
	if (!s)
		return -ENOENT;
	twheel_cancel_sync(&s->idle);
	kfree(s);
	return 0;
}

static void session_drained(struct twheel_timer *timer, ktime_t expires, void *arg)
{
	session_idle(timer);
}

static int sessions_show(struct seq_file *m, void *unused)
{
	struct session *s;
	unsigned int i;

	spin_lock_bh(&sessions_lock);
	hash_for_each(sessions, i, s, node)
		seq_printf(m, "%u ends in %lld ms\n", s->id,
			   ktime_to_ms(twheel_remaining(&s->idle)));
	spin_unlock_bh(&sessions_lock);
	return 0;
}

static int session_command(const char *line)
{
	u32 id;

	if (sscanf(line, "create %u", &id) == 1)
		return session_create(id);
	if (sscanf(line, "touch %u", &id) == 1)
		return session_touch(id);
	if (sscanf(line, "delete %u", &id) == 1)
		return session_delete(id);
	return -EINVAL;
}

static ssize_t sessions_write(struct file *filp, const char __user *buf, size_t len,
			      loff_t *pos)
{
	char line[32] = "";
	int err;

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, buf, len))
		return -EFAULT;
	err = session_command(line);
	return err ?: len;
}

static int sessions_open(struct inode *inode, struct file *filp)
{
	return single_open(filp, sessions_show, NULL);
}

static const struct file_operations sessions_fops = {
	.owner		= THIS_MODULE,
	.open		= sessions_open,
	.read		= seq_read,
	.write		= sessions_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

static int __init sessions_init(void)
{
	/*
	 * Slack saves interrupts, and nobody minds a session that lives up to 10 ms longer because
	 * of it.
	 */
	static const struct twheel_config config = {
		.clock		= CLOCK_BOOTTIME,
		.tick_ns	= 10 * NSEC_PER_MSEC,
		.slack_ns	= 10 * NSEC_PER_MSEC,
	};

	base = twheel_create(&config);
	if (IS_ERR(base))
		return PTR_ERR(base);
	file = debugfs_create_file("twheel_sessions", 0600, NULL, NULL, &sessions_fops);
	return 0;
}

static void __exit sessions_exit(void)
{
	debugfs_remove(file);
	pr_info("twheel_sessions: %llu sessions ended by unloading\n",
		twheel_drain(base, session_drained, NULL));
	twheel_destroy(base);
}

module_init(sessions_init);
module_exit(sessions_exit);

MODULE_DESCRIPTION("A table of sessions that end when idle, as a sample of twheel");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
