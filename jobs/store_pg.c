// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A store in PostgreSQL, which many lives share: see store.h. The functions that run in the server
 * are in store_pg.sql, and the tables that stay are in store_pg_tables.sql. The store notes the
 * version of these tables, and a hash of the functions. A daemon that starts replaces older tables,
 * and functions that are not its own, by those of its own version, unless other daemons live.
 *
 * A life has a connection for each lane, so that the server can do a turn of each lane at the same
 * time. Meanwhile the daemon continues. Other statements are sent on one more connection. If such a
 * statement might have to wait for a lock that a turn holds, the daemon first waits until all turns
 * are over: see connected(). The daemon waits for an answer until the lease is over, and for
 * ANSWER_US at most. But it waits longer while bytes arrive, or for the answer to a turn, and
 * renews its lease meanwhile: see receive() and receive_turn(). If no answer comes, it closes all
 * connections. The server may still execute what was sent on them, so it is not enough to connect
 * again and look. Instead the life continues under a new number, and the rows of the old number can
 * only be changed when the server is done with them. The turns of a lane have numbers, so a turn
 * that is sent again is not done twice.
 *
 * The server's clock is the only one that counts. If an answer says that the time was t, then the
 * present time is at least t, and at most t plus the whole round trip. The daemon takes t for the
 * present time, and so is never ahead of the server.
 *
 * This file is a module: see struct store_module. So twheeld needs no libpq.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <libpq-fe.h>

#include "crash.h"
#include "def.h"
#include "libtwheel.h"
#include "sql.h"

#define SCHEMA_VERSION	4
#define BURIED		"TW001"
#define OTHER_VERSION	"TW002"
#define TRIPS		16	/* how often a new life asks for the time, to know it closely */
#define START_US	(60 * US_PER_S)		/* the longest wait before there is a lease */
#define AGAIN_US	(5 * US_PER_S)		/* the same, if our lease is over */
#define ANSWER_US	(10 * US_PER_S)		/* the same, while our lease lasts */
#define NOTIFY_US	(10 * US_PER_MS)	/* commits that notify take a global lock */
#define LONG_TURN	10		/* leases: it is useless to wait longer for a turn */
#define PATIENCE_MIN	US_PER_S	/* the wait for a turn that the server is not doing */
#define PATIENCE_MAX	(256 * US_PER_S)
#define OID_INT8	20
#define OID_TEXT	25
#define OID_INT8S	1016
#define PARAMS		24
#define DAY_US		(86400 * US_PER_S)
#define ADDRESSES	32		/* of a host; further ones are not tried */
#define DEFAULT_HOST	"/var/run/postgresql"	/* of Debian's libpq, as the port is */
#define DEFAULT_PORT	"5432"
#define OPTIONS		96		/* of a connection: more than libpq has */

static const char tables[] =
#include "store_pg_tables.sql.h"
#include "store_runners.sql.h"
#include "store_outcomes.sql.h"
	;
static const char code[] =
#include "store_pg.sql.h"
	;

/* The statements that convert the tables of each version to those of the next one. */
static const char *const steps[SCHEMA_VERSION] = {
	[1] =
#include "store_runners.sql.h"
	,
	[2] = "ALTER TABLE twheel.version ADD COLUMN code text NOT NULL DEFAULT '';"
	      "DROP INDEX twheel.due_at; CREATE INDEX due_at ON twheel.due (at) WHERE off = 0",
	[3] = "DROP INDEX twheel.history_dropped;"
	      "CREATE INDEX history_life ON twheel.history (life, dropped);"
#include "store_outcomes.sql.h"
	,
};

/* The kinds of operations, in the order of twheel.turn() in store_pg.sql. */
enum kind_of_op {
	OPS_ADD, OPS_ONCE, OPS_FIRE, OPS_LEAVE, OPS_AGAIN, OPS_READY, OPS_END, OPS_MOVE, NR_OPS
};

/*
 * In place of an operation's number, twheel.turn() may answer with this: the turn was written
 * before, by a call whose answer was lost. A negative number -K means that all operations of kind K
 * were done, where the first kind is 1.
 */
#define WRITTEN		0

/* The arrays that are given to twheel.turn(), in the order of its parameters. */
enum column {
	C_ID, C_AT, C_JOB, C_ATTEMPT, C_NEXT, C_STATE, C_MISSED, C_FIRED, C_OUTCOME,
	C_STATUS, C_BEGAN, C_ENDED, C_DROPPED, C_TRIES, C_WAKE, NR_COLUMNS
};

/**
 * struct lane - turns that are done one after the other
 * @conn:	the connection, or NULL
 * @prepared:	store.connection if it knows the statement of a turn
 * @turn:	the number of the last turn that is known to be written
 * @sent:	store.connection when turn @turn + 1 was sent; 0 if it was not sent yet
 * @answer:	what has come of the answer to that turn
 * @answered:	the answer is complete
 * @order:	the operations of that turn, in the order in which they were sent
 * @nr:		how many operations these are
 * @room:	for how many operations @order and @values have room
 * @values:	the columns of a turn, as arrays in PostgreSQL's binary format
 */
struct lane {
	PGconn		*conn;
	unsigned int	prepared;
	int64_t		turn;
	unsigned int	sent;
	PGresult	*answer;
	bool		answered;
	struct op	**order;
	size_t		nr;
	size_t		room;
	int32_t		*values[NR_COLUMNS];
};

/**
 * struct address - where the server may be
 * @host:	its name, or the directory of its socket
 * @ip:		its address; empty if libpq has to look it up, and for a socket
 * @port:	its port, or empty
 */
struct address {
	char	*host;
	char	*ip;
	char	*port;
};

/**
 * struct search - where the server is, and where else it may be
 * @host:	the number of a host in the connection string
 * @at:		addresses of that host, as they were found the last time
 * @nr:		how many; 0: they are to be looked up
 * @next:	the one that is tried, or that was good
 * @good:	a copy of the last good @ip, or NULL
 * @conn:	connections to the address that is tried, which are not complete; or NULL
 * @status:	what libpq waits for at each of them
 * @end:	until when to wait for them, by boot_us()
 */
struct search {
	size_t		host;
	struct address	at[ADDRESSES];
	size_t		nr;
	size_t		next;
	char		*good;
	PGconn		*conn[LANES + 1];
	PostgresPollingStatusType status[LANES + 1];
	int64_t		end;
};

/**
 * struct pg - a store in PostgreSQL
 * @store:	what callers see
 * @lanes:	the lanes. Either all have a connection, or none has
 * @conn:	the connection for all other statements; NULL if the lanes have none
 * @options:	the connection that was asked for, as libpq understands it
 * @search:	where the server is
 * @until:	if it is not 0: how long to wait for an answer, whatever latest() would say
 * @name:	the name of this machine
 * @error:	the text of the last error
 * @prepared:	the queries that @conn knows
 * @row:	while a row_fn is called: the result that its row is in
 * @at:		the number of that row
 * @since:	the server's snapshot in which all news is known; see store_news()
 * @notified:	when a turn last notified other lives, by CLOCK_BOOTTIME
 * @renew:	when the lease is due to be renewed, by CLOCK_BOOTTIME
 * @patience:	how long to wait for a turn that the server is not doing; see receive_turn()
 * @receives:	the answer to a statement comes on @conn
 * @inside:	in a transaction. It ends with its connection, so no other connection may do a part
 *		of it
 * @told:	that transaction has written something for other lives
 */
struct pg {
	struct store	store;
	struct lane	lanes[LANES];
	PGconn		*conn;
	PQconninfoOption *options;
	struct search	search;
	int64_t		until;
	char		*name;
	char		error[ERROR_MAX];
	bool		prepared[NR_QUERIES];
	PGresult	*row;
	int		at;
	char		*since;
	int64_t		notified;
	int64_t		renew;
	int64_t		patience;
	bool		receives;
	bool		inside;
	bool		told;
};

/**
 * struct params - the parameters of a query, as libpq takes them
 * @nr:		how many
 * @type:	their types
 * @value:	their values; NULL for an SQL NULL
 * @size:	the size of a binary value
 * @format:	1 for a binary value
 * @number:	where @value points for a number: its bytes, in big-endian order
 */
struct params {
	int		nr;
	Oid		type[PARAMS];
	const char	*value[PARAMS];
	int		size[PARAMS];
	int		format[PARAMS];
	int64_t		number[PARAMS];
};

/* The store of this kind that @store, the part that callers see, is a member of. */
static struct pg *to_pg(struct store *store)
{
	return (struct pg *)((char *)store - offsetof(struct pg, store));
}

/* CLOCK_BOOTTIME in us: leases and waits go by it, since nobody can set it. */
static int64_t boot_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec * US_PER_S + ts.tv_nsec / 1000;
}

/* ---- one statement ------------------------------------------------------------------ */

static void keep_lease(struct pg *s);

/* Close the connections. Notifications may be lost by that, so memory must be read again. */
static void let_go(struct pg *s)
{
	PQfinish(s->conn);
	s->conn = NULL;
	s->store.fds[LANES] = -1;
	for (int i = 0; i < LANES; i++) {
		PQfinish(s->lanes[i].conn);
		s->lanes[i].conn = NULL;
		s->store.fds[i] = -1;
	}
	s->store.lost = true;
}

/* Set the text of the last error. Returns @err. */
__attribute__((format(printf, 3, 4)))
static int fail(struct pg *s, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(s->error, sizeof(s->error), fmt, args);
	va_end(args);
	s->error[strcspn(s->error, "\n")] = 0;
	return err;
}

/* @conn cannot be used any more: close all. If @why is NULL, libpq knows why. Returns -EIO. */
static int unusable(struct pg *s, PGconn *conn, const char *why)
{
	int err = fail(s, -EIO, "%s", why ? why : PQerrorMessage(conn));

	let_go(s);
	return err;
}

/* How long it is until @until, for poll(): 0 if that is over, and a day at most. */
static int ms_until(int64_t until)
{
	int64_t left = until - boot_us();

	if (left <= 0)
		return 0;
	return (int)((left < DAY_US ? left : DAY_US) / US_PER_MS) + 1;
}

/*
 * Wait until a connection is readable, or with @write writable. Returns false if it is not by
 * @until, a time of boot_us().
 */
static bool wait_for(const PGconn *conn, bool write, int64_t until)
{
	struct pollfd pollfd = { .fd = PQsocket(conn) };
	int left = ms_until(until), n;

	pollfd.events = (short)(POLLIN | (write ? POLLOUT : 0));
	if (!left)
		return false;
	n = poll(&pollfd, 1, left);
	return n > 0 || (n < 0 && errno == EINTR);
}

/* Until when to wait for an answer: not beyond the end of the lease, if there is one. */
static int64_t latest(const struct pg *s)
{
	int64_t now = boot_us(), end = s->store.lease_end;

	if (s->until)
		return s->until;
	if (!s->store.life)
		return now + START_US;
	if (end <= now)
		return now + AGAIN_US;
	return end < now + ANSWER_US ? end : now + ANSWER_US;
}

/* Read the notifications that came with the last answer. Those of this connection do not count. */
static void read_notices(struct pg *s)
{
	PGnotify *notify;

	while ((notify = PQnotifies(s->conn))) {
		s->store.mail |= notify->be_pid != PQbackendPID(s->conn);
		s->store.hurry |= *notify->extra;
		PQfreemem(notify);
	}
}

/*
 * Take what has come of an answer, without waiting. *@result becomes the last result in it. Returns
 * 1 if the answer is complete, 0 if more is to come, or -1 if the connection is broken. *@write
 * says that the statement itself could not be sent completely yet.
 */
static int take(PGconn *conn, PGresult **result, bool *write)
{
	int left = PQflush(conn);

	*write = left;
	if (left < 0 || !PQconsumeInput(conn))
		return -1;
	while (!left && !PQisBusy(conn)) {
		PGresult *next = PQgetResult(conn);

		if (!next)
			return 1;
		PQclear(*result);
		*result = next;
	}
	return 0;
}

/*
 * Wait for a whole answer. Returns false if nothing comes until latest(), or if the connection is
 * broken; *@result may be a part of the answer then. An answer may be so long that it takes longer
 * than a lease to come, so the lease is renewed meanwhile. If the renewal loses the connections,
 * there is no s->conn afterwards.
 */
static bool receive(struct pg *s, PGconn *conn, PGresult **result)
{
	int64_t until = latest(s);
	bool renews = conn == s->conn && s->store.life, write;
	int n;

	while (!(n = take(conn, result, &write))) {
		int64_t now = boot_us();

		if (wait_for(conn, write, renews && s->renew < until ? s->renew : until)) {
			if (!s->store.life || now < s->store.lease_end)
				until = latest(s);
			continue;
		}
		if (boot_us() >= until)
			return false;
		s->receives = true;
		keep_lease(s);
		s->receives = false;
		if (!s->conn)
			return false;
	}
	return n > 0;
}

/* The error for an SQLSTATE. store_pg.sql raises the first two; 23505 is unique_violation. */
static int to_errno(const char *state)
{
	if (!strcmp(state, BURIED))
		return -ESTALE;
	if (!strcmp(state, OTHER_VERSION))
		return -EBUSY;
	if (!strcmp(state, "23505"))
		return -EEXIST;
	return -EIO;
}

/* The server has refused a statement: keep why, and what it says about that. Returns the error. */
static int refused(struct pg *s, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
	const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
	const char *why = PQresultErrorMessage(result);

	return fail(s, to_errno(state ? state : ""), "%.*s%s%s%s%s", (int)strcspn(why, "\n"), why,
		    detail ? ": " : "", detail ? detail : "", hint ? ". " : "", hint ? hint : "");
}

/*
 * Look at a result, or NULL if none came. Returns the result, which the caller frees; or NULL with
 * an error in *@err, the result freed and, if @conn cannot be used any more, no connection left.
 * @sent says that the statement was sent, so that a missing result means that none came in time.
 */
static PGresult *checked(struct pg *s, PGconn *conn, PGresult *result, bool sent, int *err)
{
	*err = 0;
	if (!result) {
		bool alive = PQstatus(conn) == CONNECTION_OK && sent;

		*err = unusable(s, conn, alive ? "the server does not answer" : NULL);
		return NULL;
	}
	read_notices(s);
	if (PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK)
		return result;
	*err = refused(s, result);
	PQclear(result);
	if (conn && PQstatus(conn) != CONNECTION_OK)
		let_go(s);
	return NULL;
}

/* Wait for the result of a statement that was just sent, if @sent. Returns as checked() does. */
static PGresult *result_on(struct pg *s, PGconn *conn, int sent, int *err)
{
	PGresult *result = NULL;

	if (sent && !receive(s, conn, &result)) {
		PQclear(result);
		result = NULL;
	}
	if (!result && !s->conn) {	/* @conn is closed, and the reason is kept */
		*err = -EIO;
		return NULL;
	}
	return checked(s, conn, result, sent, err);
}

/* result_on() for s->conn. */
static PGresult *result_of(struct pg *s, int sent, int *err)
{
	return result_on(s, s->conn, sent, err);
}

/* Add a parameter, an int64_t in binary. Within PARAMS of them, which the callers see to. */
static void add_number(struct params *p, int64_t n)
{
	p->number[p->nr] = (int64_t)htobe64((uint64_t)n);
	p->type[p->nr] = OID_INT8;
	p->value[p->nr] = (const char *)&p->number[p->nr];
	p->size[p->nr] = sizeof(n);
	p->format[p->nr++] = 1;
}

/* Add a parameter, a text or NULL, which must stay until the query was sent. */
static void add_text(struct params *p, const char *text)
{
	p->type[p->nr] = OID_TEXT;
	p->value[p->nr++] = text;
}

/* Execute a query on a connection. Returns its result as checked() does. */
static PGresult *call_on(struct pg *s, PGconn *conn, const char *text, const struct params *p,
			 int *err)
{
	return result_on(s, conn, PQsendQueryParams(conn, text, p->nr, p->type, p->value, p->size,
						    p->format, 0), err);
}

/* call_on() for s->conn. */
static PGresult *call(struct pg *s, const char *text, const struct params *p, int *err)
{
	return call_on(s, s->conn, text, p, err);
}

/* Execute one or more statements without parameters. */
static int command(struct pg *s, const char *text)
{
	int err;

	PQclear(result_of(s, PQsendQuery(s->conn, text), &err));
	return err;
}

/* A number in a result that is in text format; 0 if it is NULL. */
static int64_t number_at(const PGresult *result, int row, int column)
{
	return strtoll(PQgetvalue(result, row, column), NULL, 10);
}

/* Execute a query whose result is one number. */
static int ask(struct pg *s, const char *text, const struct params *p, int64_t *n)
{
	int err;
	PGresult *result = call(s, text, p, &err);

	if (!err)
		*n = number_at(result, 0, 0);
	PQclear(result);
	return err;
}

/* ---- the server's time -------------------------------------------------------------- */

/*
 * @server was the server's time at some moment between @sent and now. That bounds the difference of
 * the clocks from both sides: move store.clock into the bounds.
 */
static void set_clock(struct pg *s, int64_t server, int64_t sent)
{
	int64_t now = boot_us(), low = server - now, high = server - sent;
	int64_t clock = s->store.clock;

	if (!clock || clock < low)
		s->store.clock = low;
	else if (clock > high)
		s->store.clock = high;
	if (clock && llabs(s->store.clock - clock) > JUMP_US)
		s->store.lost = true;
}

/* Ask for the server's time, and set ours by it. Each trip can only narrow the bounds. */
static int read_clock(struct pg *s)
{
	int64_t sent = boot_us(), server;
	struct params none = { 0 };
	int err = ask(s, "SELECT twheel.now_us()", &none, &server);

	if (!err)
		set_clock(s, server, sent);
	return err;
}

/* ---- lives -------------------------------------------------------------------------- */

/*
 * Our lease counts from before the request was sent, and is a tenth shorter than the server's, in
 * case our clock is slow.
 */
static void leased(struct pg *s, int64_t sent)
{
	s->store.lease_end = sent + s->store.lease * 9 / 10;
	s->renew = sent + s->store.lease / 3;
}

/* Begin a life, by the call @text. */
static int begin_life(struct pg *s, const char *text, const struct params *p)
{
	int64_t sent = boot_us();
	int err = ask(s, text, p, &s->store.life);

	if (!err)
		leased(s, sent);
	return err;
}

/* Begin a life. The one whose key was @old is over, and one that has our key. */
static int begin_new(struct pg *s, int64_t old)
{
	struct params p = { 0 };

	add_number(&p, old);
	add_text(&p, s->name);
	add_number(&p, s->store.lease);
	add_number(&p, s->store.key);
	add_text(&p, code);
	return begin_life(s, "SELECT twheel.join_as($1, $2, $3, $4, md5($5))", &p);
}

/* Continue our life under a new number. It keeps its key. */
static int begin_next(struct pg *s)
{
	struct params p = { 0 };

	add_number(&p, s->store.life);
	add_text(&p, s->name);
	add_number(&p, s->store.lease);
	return begin_life(s, "SELECT twheel.go_on($1, $2, $3)", &p);
}

/*
 * Renew the lease. *@todo becomes whether parts are to be taken or given up, and *@parts those that
 * we own.
 */
static int renew(struct pg *s, PGconn *conn, int *todo, uint64_t *parts)
{
	struct params p = { 0 };
	int64_t sent = boot_us();
	PGresult *result;
	int err;

	add_number(&p, s->store.life);
	add_number(&p, s->store.key);
	add_number(&p, s->store.lease);
	result = call_on(s, conn, "SELECT * FROM twheel.beat($1, $2, $3)", &p, &err);
	if (!err) {
		leased(s, sent);
		set_clock(s, number_at(result, 0, 0), sent);
		*todo = (int)number_at(result, 0, 1);
		*parts = (uint64_t)number_at(result, 0, 2);
	}
	PQclear(result);
	return err;
}

/* Was a turn sent by this connection, and is its answer not complete? */
static bool is_under_way(const struct pg *s, const struct lane *lane)
{
	return lane->conn && lane->sent == s->store.connection && !lane->answered;
}

/* The connection of a lane by which no turn is under way, or NULL. */
static PGconn *idle_lane(const struct pg *s)
{
	for (const struct lane *lane = s->lanes; lane < s->lanes + LANES; lane++)
		if (!is_under_way(s, lane))
			return lane->conn;
	return NULL;
}

/*
 * If the lease is due to be renewed, do that now. Code that may take long calls this often: before
 * each statement, for each row of a result, while an answer comes, and by store_keep(). So the
 * lease does not end meanwhile, however much there is to do.
 *
 * In a transaction no turn is under way, so the connection of a lane is free. Other lives see at
 * once what is written on that connection, and the fence of the transaction does not block it. An
 * error is not reported: the caller learns of a lost connection by its next statement, and the loop
 * learns of a burial by store_beat().
 */
static void keep_lease(struct pg *s)
{
	PGconn *conn = s->inside || s->receives ? idle_lane(s) : s->conn;
	uint64_t parts;
	int todo = 0;

	if (!s->store.life || boot_us() < s->renew)
		return;
	s->renew = INT64_MAX;	/* renew() may come here again: do nothing then */
	if (!conn || renew(s, conn, &todo, &parts))
		s->renew = boot_us() + s->store.lease / 3;
	s->store.hurry |= todo;
}

/* Prepare s->conn, which was just made. Returns 0 or an error. */
static int set_up_session(struct pg *s)
{
	int64_t lease = s->store.lease / US_PER_MS, most = AGAIN_US / US_PER_MS;
	char text[1600];

	PQsetnonblocking(s->conn, 1);
	/*
	 * Look rows up by index, and in the order in which joins are written. Plan each query
	 * anew: a plan that was made when a table was small is bad when it has grown. If a daemon
	 * stops in the middle of a transaction, the server ends that soon, so that others can
	 * continue. Other settings replace those of the server's configuration, which could
	 * break promises: an idle connection must stay, a statement must see what was committed
	 * before it, and the daemon itself decides how long to wait for a statement.
	 */
	snprintf(text, sizeof(text),
		 "SET search_path = twheel; SET client_encoding = 'UTF8'; SET jit = off;"
		 "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;"
		 "SET enable_mergejoin = off; SET enable_material = off;"
		 "SET join_collapse_limit = 1; SET plan_cache_mode = force_custom_plan;"
		 "SET idle_session_timeout = 0; SET statement_timeout = 0;"
		 "SET default_transaction_isolation = 'read committed';"
		 "SET default_transaction_read_only = off;"
		 /* How the server notices a dead connection, as we do by alive(). */
		 "SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 10;"
		 "SET tcp_keepalives_count = 3; SET tcp_user_timeout = 30000;"
		 "SELECT set_config(name, '0', false) FROM pg_settings"
		 " WHERE name = 'transaction_timeout';"		/* since PostgreSQL 17 */
		 "SET idle_in_transaction_session_timeout = %lld; SET lock_timeout = %lld;"
		 /* These are to stay ours if the server's configuration is changed. */
		 "SELECT set_config('synchronous_commit', coalesce(nullif("
		 "current_setting('synchronous_commit'), 'off'), 'on'), false)",
		 (long long)(lease < most ? lease : most),
		 (long long)(lease / 2 < most ? lease / 2 : most));
	return command(s, text);
}

/* ---- where the server is ------------------------------------------------------------ */

/*
 * A connection string may name several hosts, and a host may have several addresses. libpq tries
 * one after the other. But we do not let libpq block, and then it waits for a silent address, as of
 * a machine that has lost its power, for as long as its caller does. So we try each address by
 * connections of its own, for as long as the connection string says. We look a host up when its
 * turn has come, and keep its addresses until all were tried, because a name server may list them
 * in another order each time.
 */

/* The value of an option: of the connection string, or libpq's default. An empty text for none. */
static const char *option(const struct pg *s, const char *keyword)
{
	for (const PQconninfoOption *o = s->options; o && o->keyword; o++)
		if (!strcmp(o->keyword, keyword) && o->val)
			return o->val;
	return "";
}

/* How many entries a list with commas has. */
static size_t entries(const char *list)
{
	size_t n = 1;

	while ((list = strchr(list, ','))) {
		list++;
		n++;
	}
	return n;
}

/* A copy of entry @i of a list with commas. If the list has one entry, that one is for each @i. */
static char *entry(const char *list, size_t i)
{
	if (entries(list) == 1)
		i = 0;
	while (i-- && *list) {
		list += strcspn(list, ",");
		list += *list == ',';
	}
	return strndup(list, strcspn(list, ","));
}

static void add_address(struct search *to, const char *host, const char *ip, const char *port)
{
	if (to->nr < ADDRESSES)
		to->at[to->nr++] = (struct address) { strdup(host), strdup(ip), strdup(port) };
}

static void forget_addresses(struct search *to)
{
	for (size_t i = 0; i < to->nr; i++) {
		free(to->at[i].host);
		free(to->at[i].ip);
		free(to->at[i].port);
	}
	to->nr = 0;
	to->next = 0;
}

/* Add all addresses of a host. If none is found, add its name: libpq will say what is wrong. */
static void look_up(struct search *to, const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	char ip[NI_MAXHOST];

	if (*host && *host != '/' && *host != '@')
		getaddrinfo(host, NULL, &hints, &found);
	if (!found)
		add_address(to, host, "", port);
	for (const struct addrinfo *a = found; a; a = a->ai_next)
		if (!getnameinfo(a->ai_addr, a->ai_addrlen, ip, sizeof(ip), NULL, 0,
				 NI_NUMERICHOST))
			add_address(to, host, ip, port);
	if (found)
		freeaddrinfo(found);
}

/* Move the address that was good the last time to the front, so that it is tried first. */
static void put_good_first(struct search *to)
{
	for (size_t i = 1; to->good && i < to->nr; i++) {
		struct address at = to->at[i];

		if (strcmp(at.ip, to->good))
			continue;
		to->at[i] = to->at[0];
		to->at[0] = at;
	}
}

/* How many hosts there are; 0 if the lists of hosts, addresses and ports differ in length. */
static size_t nr_hosts(const struct pg *s)
{
	const char *hosts = option(s, "host"), *ips = option(s, "hostaddr");
	size_t nr = entries(*ips ? ips : hosts), ports = entries(option(s, "port"));

	return (*hosts && entries(hosts) != nr) || (ports != nr && ports > 1) ? 0 : nr;
}

/*
 * Find all addresses of the host whose turn it is: at least one. If the lists differ in length,
 * give all of them to libpq, which will say what is wrong.
 */
static void find_addresses(struct pg *s)
{
	const char *hosts = option(s, "host"), *ips = option(s, "hostaddr");
	struct search *to = &s->search;
	char *host, *ip, *port;

	if (!nr_hosts(s)) {
		add_address(to, hosts, ips, option(s, "port"));
		return;
	}
	host = entry(hosts, to->host);
	ip = entry(ips, to->host);
	port = entry(option(s, "port"), to->host);
	if (*ip)
		add_address(to, host, ip, port);
	else
		look_up(to, host, port);
	put_good_first(to);
	free(host);
	free(ip);
	free(port);
}

static void drop(struct search *to)
{
	for (int i = 0; i <= LANES; i++) {
		PQfinish(to->conn[i]);
		to->conn[i] = NULL;
	}
}

/* Go on to the next address. Returns true if it is one of the next host. */
static bool next_address(struct pg *s)
{
	struct search *to = &s->search;

	drop(to);
	if (++to->next < to->nr)
		return false;
	forget_addresses(to);
	if (++to->host >= nr_hosts(s))
		to->host = 0;
	return true;
}

/*
 * @value, or @other if that is empty. If an option is empty, libpq would take the value of the
 * environment, and not its own default.
 */
static const char *or(const char *value, const char *other)
{
	return *value ? value : other;
}

/*
 * If the connection string does not say how soon to notice a dead connection, these values do: what
 * was sent must be acknowledged within ANSWER_US, and an idle connection is probed now and then,
 * also so that no router forgets it. NULL for other options.
 */
static const char *alive(const char *keyword)
{
	static const char *const value[][2] = {
		{ "keepalives_idle", "60" }, { "keepalives_interval", "10" },
		{ "keepalives_count", "3" }, { "tcp_user_timeout", "10000" },
	};

	for (size_t i = 0; i < sizeof(value) / sizeof(*value); i++)
		if (!strcmp(keyword, value[i][0]))
			return value[i][1];
	return NULL;
}

/*
 * The value of option @o for a connection to @at. If there are several addresses, accept only a
 * server that can be written: a standby must not keep us from the others.
 */
static const char *value_at(const PQconninfoOption *o, const struct address *at, bool several)
{
	if (!strcmp(o->keyword, "host"))
		return or(at->host, or(at->ip, DEFAULT_HOST));
	if (!strcmp(o->keyword, "hostaddr"))
		return at->ip;
	if (!strcmp(o->keyword, "port"))
		return or(at->port, DEFAULT_PORT);
	if (several && o->val && !strcmp(o->keyword, "target_session_attrs") &&
	    !strcmp(o->val, "any"))
		return "read-write";
	return o->val && *o->val ? o->val : alive(o->keyword);
}

/* Do not print the server's notices: errors are reported by their results. */
static void no_notice(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

/* Begin to connect to @at, with the other options of the connection string. */
static PGconn *begin_at(const struct pg *s, const struct address *at, bool several)
{
	const char *keyword[OPTIONS + 1], *value[OPTIONS + 1];
	size_t n = 0;
	PGconn *conn;

	for (const PQconninfoOption *o = s->options; o->keyword && n < OPTIONS; o++) {
		keyword[n] = o->keyword;
		value[n++] = value_at(o, at, several);
	}
	keyword[n] = NULL;
	value[n] = NULL;
	conn = PQconnectStartParams(keyword, value, 0);
	PQsetNoticeProcessor(conn, no_notice, NULL);
	return conn;
}

/* Begin to connect to the address whose turn it is: for as long as the connection string says. */
static void begin_all(struct pg *s)
{
	int64_t seconds = atoi(option(s, "connect_timeout"));
	struct search *to = &s->search;

	for (int i = 0; i <= LANES; i++) {
		to->conn[i] = begin_at(s, &to->at[to->next], to->nr > 1 || nr_hosts(s) > 1);
		to->status[i] = PGRES_POLLING_WRITING;
	}
	to->end = boot_us() + (seconds > 0 ? seconds * US_PER_S : AGAIN_US);
}

/*
 * Fill in @fds with the connections that are not complete, and what they wait for. Returns how many
 * there are, or an error.
 */
static int incomplete(struct pg *s, struct pollfd fds[LANES + 1])
{
	const struct search *to = &s->search;
	int nr = 0;

	for (int i = 0; i <= LANES; i++) {
		if (PQstatus(to->conn[i]) == CONNECTION_BAD ||
		    to->status[i] == PGRES_POLLING_FAILED)
			return fail(s, -EIO, "%s", PQerrorMessage(to->conn[i]));
		fds[i].fd = to->status[i] == PGRES_POLLING_OK ? -1 : PQsocket(to->conn[i]);
		fds[i].events = to->status[i] == PGRES_POLLING_WRITING ? POLLOUT : POLLIN;
		fds[i].revents = 0;
		nr += fds[i].fd >= 0;
	}
	return nr;
}

/*
 * Connect, but wait no longer than @until: then the next call continues. Returns 0 or an error. If
 * the address is not good, there are no connections then.
 */
static int connect_all(struct pg *s, int64_t until)
{
	struct search *to = &s->search;
	struct pollfd fds[LANES + 1];
	int nr;

	if (!*to->conn)
		begin_all(s);
	if (until > to->end)
		until = to->end;
	while ((nr = incomplete(s, fds)) > 0) {
		int left = ms_until(until);

		if (!left)
			return fail(s, -EIO, "the server does not answer");
		poll(fds, LANES + 1, left);
		for (int i = 0; i <= LANES; i++)
			if (fds[i].revents)
				to->status[i] = PQconnectPoll(to->conn[i]);
	}
	if (nr)
		drop(to);
	return nr;
}

/*
 * All connections are complete: set them up for use. If the server has let us in and says nothing
 * more, do not wait long for it, even if we have no life yet: there may be other servers. Returns 0
 * or an error; after an error there are no connections.
 */
static int take_all(struct pg *s)
{
	int err = 0;

	s->until = s->store.life ? latest(s) : boot_us() + AGAIN_US;
	for (int i = 0; i <= LANES && !err; i++) {
		s->conn = s->search.conn[i];
		s->search.conn[i] = NULL;
		s->store.fds[i] = PQsocket(s->conn);
		err = set_up_session(s);
		if (!err && i < LANES) {
			s->lanes[i].conn = s->conn;
			s->conn = NULL;
		}
	}
	s->until = 0;
	if (err)
		let_go(s);
	return err;
}

/* The server was found. Next time it may have another address. */
static void found_server(struct search *to)
{
	free(to->good);
	to->good = strdup(to->at[to->next].ip);
	forget_addresses(to);
}

/*
 * Make all connections, to the address that was good the last time or to one that follows. If the
 * daemon has no life yet, try all addresses. If it has one, stop after some time, so that the loop
 * can do something else; then the next call continues.
 */
static int find_server(struct pg *s)
{
	int64_t until = s->store.life ? latest(s) : INT64_MAX;
	size_t hosts = 0;
	int err;

	do {
		if (!s->search.nr)
			find_addresses(s);
		err = connect_all(s, until);
		/* This call must end, but the address has time left: the next call continues. */
		if (err && *s->search.conn && boot_us() < s->search.end)
			return err;
		if (!err)
			err = take_all(s);
		if (err)
			hosts += next_address(s);
		else
			found_server(&s->search);
	} while (err && hosts < nr_hosts(s) && boot_us() < until);
	return err;
}

/*
 * Any of the functions of libpq used here may look up a name, or read a file of the home directory,
 * which may take longer than the lease: hence the guard.
 */
static int open_connections(struct pg *s)
{
	int err;

	if (s->store.guard)
		s->store.guard(true);
	err = find_server(s);
	if (s->store.guard)
		s->store.guard(false);
	memset(s->prepared, 0, sizeof(s->prepared));
	s->store.connection++;
	return err ? err : command(s, "LISTEN twheel");
}

/*
 * Is the server doing the turn that was sent in this lane? If it is, it has locked the row of the
 * lane. If not, it has not got the turn, or the answer is lost or on its way: a router may have
 * forgotten a connection that was idle for long, without telling either side.
 */
static bool is_working(struct pg *s, const struct lane *lane)
{
	struct params p = { 0 };
	PGresult *result;
	bool works;
	int err;

	add_number(&p, s->store.life);
	add_number(&p, lane - s->lanes);
	result = call_on(s, s->conn, "SELECT FROM twheel.lane WHERE node = $1 AND nr = $2"
			 " FOR UPDATE SKIP LOCKED", &p, &err);
	works = err || !PQntuples(result);
	PQclear(result);
	return works;
}

/*
 * receive() for the answer to a turn. A turn may take longer than a lease: the connection of other
 * statements is idle meanwhile, so the lease is renewed on that one. It is also renewed if there is
 * no answer for ANSWER_US, to see whether the server is there. If the renewal loses the
 * connections, lane->conn is NULL afterwards. While bytes arrive, the link is only slow. If no byte
 * has come for LONG_TURN leases, the server is stuck, and the loop waits no longer.
 *
 * If the server is not doing the turn, the connection of the lane seems to be lost. But the turn or
 * its answer may be on its way, and may take as long the next time. So each time the daemon waits
 * longer before it gives the connection up, until a turn was quick again.
 */
static bool receive_turn(struct pg *s, struct lane *lane)
{
	int64_t begun = boot_us(), heard = begun, look = begun + ANSWER_US, idle = 0, until;
	bool write;
	int n;

	while (!(n = take(lane->conn, &lane->answer, &write))) {
		until = s->renew < latest(s) ? s->renew : latest(s);
		if (wait_for(lane->conn, write, until < look ? until : look)) {
			heard = boot_us();
			look = heard + ANSWER_US;
			idle = 0;
			continue;
		}
		s->renew = boot_us();
		keep_lease(s);
		if (lane->conn && boot_us() >= look) {
			idle = is_working(s, lane) ? 0 : idle ? idle : boot_us();
			look = boot_us() + (idle ? US_PER_S : ANSWER_US);
		}
		if (!lane->conn)
			return false;
		if (boot_us() >= (idle ? idle + s->patience : heard + LONG_TURN * s->store.lease))
			break;
	}
	if (n > 0 && boot_us() < begun + ANSWER_US)
		s->patience = PATIENCE_MIN;
	else if (!n && idle && s->patience < PATIENCE_MAX)
		s->patience *= 4;
	return n > 0;
}

/*
 * Take what has come of the answer to a turn that is under way; with @wait, all of it. If the
 * connection is broken, or the answer does not come in time, the connections are closed.
 */
static void hear(struct pg *s, struct lane *lane, bool wait)
{
	bool write, alive;
	int n = wait ? receive_turn(s, lane) :
		       take(lane->conn, &lane->answer, &write);

	lane->answered = n > 0;
	if (!lane->conn)
		return;
	alive = PQstatus(lane->conn) == CONNECTION_OK;
	if (n < 0 || (!n && wait))
		unusable(s, lane->conn, alive ? "the server does not answer" : NULL);
}

/*
 * Notice if the server has closed the connection of an idle lane. With @wait, wait until no turn is
 * under way.
 */
static void check_lanes(struct pg *s, bool wait)
{
	for (struct lane *lane = s->lanes; lane < s->lanes + LANES; lane++) {
		if (!is_under_way(s, lane)) {
			if (lane->conn && !PQconsumeInput(lane->conn))
				unusable(s, lane->conn, NULL);
		} else if (wait) {
			hear(s, lane, true);
		}
	}
}

/*
 * Make sure that there are connections: each statement begins with this, or with connected(). If
 * they were lost, connect again, and let our life continue under a new number.
 */
static int reachable(struct pg *s)
{
	int err;

	keep_lease(s);
	if (s->inside)
		return s->conn ? 0 : fail(s, -EIO, "the connection was lost");
	check_lanes(s, false);
	if (s->conn)
		return 0;
	err = open_connections(s);
	if (!err && s->store.life) {
		crash_point("connections were made again");
		err = begin_next(s);
		crash_point("a life goes on");
	}
	if (err)
		let_go(s);
	return err;
}

/*
 * reachable(), and wait until no turn is in progress: for statements that need what turns have
 * written, or that might have to wait for a lock of a turn. While a statement waits, nobody reads
 * the answer to the turn.
 */
static int connected(struct pg *s)
{
	keep_lease(s);
	if (!s->inside)
		check_lanes(s, true);
	return reachable(s);
}

/* Take or give up parts until our share is right, and bury lives whose leases are over. */
static int share_out(struct pg *s)
{
	struct params p = { 0 };
	int64_t parts;
	int err = connected(s);

	add_number(&p, s->store.life);
	if (!err)
		err = ask(s, "SELECT twheel.balance($1)", &p, &parts);
	if (!err)
		s->store.parts = (uint64_t)parts;
	return err;
}

static int pg_beat(struct store *store)
{
	struct pg *s = to_pg(store);
	int err, todo = 0;

	s->renew = INT64_MAX;	/* keep_lease() is to do nothing: it is renewed here */
	err = reachable(s);
	if (!err)
		err = renew(s, s->conn, &todo, &store->parts);
	if (err)
		s->renew = boot_us();
	crash_point("a lease was renewed");
	if (err || !todo)
		return err;
	err = share_out(s);
	crash_point("parts were claimed");
	/* If that failed, but not the connection, the next beat tries again: our parts are ours. */
	return err == -EIO && s->conn ? 0 : err;
}

static void pg_keep(struct store *store)
{
	keep_lease(to_pg(store));
}

/* Note that all news in the snapshot is known that is in the first column of @result. */
static int saw(struct pg *s, const PGresult *result)
{
	char *since = strdup(PQgetvalue(result, 0, 0));

	if (!since)
		return fail(s, -ENOMEM, "no memory");
	free(s->since);
	s->since = since;
	return 0;
}

/* News counts from now on: the caller reads everything next, and so sees all earlier changes. */
static int pg_join(struct store *store, int64_t old)
{
	struct pg *s = to_pg(store);
	struct params none = { 0 };
	PGresult *result = NULL;
	int err = connected(s);

	for (int i = 0; i < TRIPS && !err; i++)
		err = read_clock(s);
	if (!err)
		result = call(s, "SELECT pg_current_snapshot()", &none, &err);
	if (!err)
		err = saw(s, result);
	PQclear(result);
	if (!err)
		err = ask(s, "SELECT twheel.seen_last()", &none, &store->seen);
	if (!err)
		err = begin_new(s, old);
	crash_point("a life was begun");
	store->lost = false;
	return err;
}

/* Errors are ignored: if this fails, the others wait for the end of the lease. */
static void pg_leave(struct store *store)
{
	struct pg *s = to_pg(store);
	struct params p = { 0 };
	int err = connected(s);

	add_number(&p, store->life);
	crash_point("before a life leaves");
	if (!err)
		PQclear(call(s, "SELECT twheel.leave($1)", &p, &err));
	crash_point("a life has left");
}

/*
 * If there is no change, the server answers with one row that names none. Each row has the snapshot
 * from which the next call must continue. Note it only when @fn has taken all rows: otherwise
 * changes would be lost.
 */
static int pg_news(struct store *store, int (*fn)(void *arg, const struct news *), void *arg)
{
	struct pg *s = to_pg(store);
	struct params p = { 0 };
	int err = fn ? connected(s) : reachable(s);
	PGresult *result = NULL;

	if (err)
		return err;
	add_number(&p, store->life);
	add_text(&p, s->since);
	result = call(s, "SELECT * FROM twheel.news($1, CAST($2 AS pg_snapshot))", &p, &err);
	if (!err && !fn && !PQgetisnull(result, 0, 1))
		err = -EAGAIN;
	for (int i = 0; !err && i < PQntuples(result); i++) {
		struct news news = {
			.type = (enum news_type)number_at(result, i, 1),
			.job = number_at(result, i, 2),
			.id = number_at(result, i, 3),
			.at = number_at(result, i, 4),
		};

		if (!PQgetisnull(result, i, 1))
			err = fn(arg, &news);
		keep_lease(s);
	}
	if (!err)
		err = saw(s, result);
	PQclear(result);
	return err;
}

/* ---- queries ------------------------------------------------------------------------ */

/* The parameters of a query, as @fmt of struct store_ops describes them. */
static void take_params(struct params *p, const char *fmt, va_list args)
{
	*p = (struct params) { 0 };
	for (; *fmt; fmt++) {
		if (*fmt == 'i')
			add_number(p, va_arg(args, int64_t));
		else
			add_text(p, va_arg(args, const char *));
	}
}

/* Prepare query @id as @name, unless the connection knows it already. Returns 0 or an error. */
static int prepare(struct pg *s, enum sql_id id, const char *name, const char *text,
		   const struct params *p)
{
	int err;

	if (s->prepared[id])
		return 0;
	PQclear(result_of(s, PQsendPrepare(s->conn, name, text, p->nr, p->type), &err));
	s->prepared[id] = !err;
	return err;
}

/*
 * @row reads the row by pg_number() and pg_text(). It must not execute another query, since there
 * is one s->row.
 */
static int pg_query(struct store *store, enum sql_id id, const char *text, row_fn row,
		    void *closure, void *arg, const char *fmt, va_list args)
{
	struct pg *s = to_pg(store);
	PGresult *result = NULL;
	struct params p;
	char name[16];
	bool beside;
	int err;

	take_params(&p, fmt, args);
	snprintf(name, sizeof(name), "q%d", id);
	/* Those for the window, old history, runners and logs may run beside turns. */
	beside = id == Q_WINDOW || id == Q_EXPIRED || id == Q_IDLE || id == Q_KNOWN;
	err = beside ? reachable(s) : connected(s);
	if (!err)
		err = prepare(s, id, name, text, &p);
	if (!err)
		result = result_of(s, PQsendQueryPrepared(s->conn, name, p.nr, p.value, p.size,
							  p.format, 0), &err);
	if (err)
		return err;
	store->changed = atoll(PQcmdTuples(result));
	s->told |= id >= Q_TELL;
	for (int i = 0; row && i < PQntuples(result); i++) {
		s->row = result;
		s->at = i;
		row(store, closure, arg);
		keep_lease(s);
	}
	PQclear(result);
	return 0;
}

static int64_t pg_number(struct store *store, int column)
{
	struct pg *s = to_pg(store);

	return number_at(s->row, s->at, column);
}

static const char *pg_text(struct store *store, int column)
{
	struct pg *s = to_pg(store);

	return PQgetisnull(s->row, s->at, column) ? NULL : PQgetvalue(s->row, s->at, column);
}

/* After a ROLLBACK, store_error() still has the text of the error that led to it. */
static int pg_end(struct store *store, int err)
{
	struct pg *s = to_pg(store);
	char why[ERROR_MAX];

	s->inside = false;
	crash_point("before the commit");
	if (!err)
		err = command(s, s->told ? "SELECT pg_notify('twheel', ''); COMMIT" : "COMMIT");
	crash_point("after the commit");
	if (err && s->conn && PQtransactionStatus(s->conn) != PQTRANS_IDLE) {
		memcpy(why, s->error, sizeof(why));
		command(s, "ROLLBACK");
		memcpy(s->error, why, sizeof(why));
	}
	return err;
}

/*
 * Begin a transaction. Its lock makes the changes of all lives follow each other. A life that was
 * buried must not change anything: it would not tell the new owners of parts that it believes to be
 * its own.
 */
static int pg_begin(struct store *store)
{
	struct pg *s = to_pg(store);
	int err = connected(s);
	char text[128];

	s->told = false;
	snprintf(text, sizeof(text),
		 "BEGIN; SELECT pg_advisory_xact_lock(7482), twheel.fence(%lld)",
		 (long long)store->life);
	if (!err)
		err = command(s, text);
	s->inside = !err;
	return err ? pg_end(store, err == -ESTALE ? -EIO : err) : 0;
}

/* ---- turns -------------------------------------------------------------------------- */

/* The kind of @op, as twheel.turn() has it. */
static enum kind_of_op kind_of(const struct op *op)
{
	static const enum kind_of_op kinds[] = {
		[OP_FIRE] = OPS_FIRE, [OP_LEAVE] = OPS_LEAVE, [OP_END] = OPS_END,
		[OP_AGAIN] = OPS_AGAIN, [OP_READY] = OPS_READY, [OP_MOVE] = OPS_MOVE,
		[OP_ADD] = OPS_ADD,
	};

	return op->type == OP_FIRE && !op->next ? OPS_ONCE : kinds[op->type];
}

#define ARRAY_HEAD	5	/* words: dimensions, NULLs, type, size, first index */

/* An array of int64_t as the server has it: each number is four bytes of its length and then it. */
static void set_value(int32_t *array, size_t i, int64_t n)
{
	int32_t *to = array + ARRAY_HEAD + 3 * i;
	uint64_t big = htobe64((uint64_t)n);

	*to = (int32_t)htobe32(sizeof(n));
	memcpy(to + 1, &big, sizeof(big));
}

/* Begin an array of @nr numbers: one dimension, no NULLs, index from 1. */
static void set_head(int32_t *to, size_t nr)
{
	const uint32_t head[ARRAY_HEAD] = { nr ? 1 : 0, 0, OID_INT8, (uint32_t)nr, 1 };

	for (int i = 0; i < ARRAY_HEAD; i++)
		to[i] = (int32_t)htobe32(head[i]);
}

/* Write @op as entry @i of the columns. */
static void set_op(struct lane *lane, size_t i, const struct op *op)
{
	const struct firing *f = &op->line.firing, *next = &op->next_firing;
	bool again = op->type == OP_AGAIN;
	const int64_t values[NR_COLUMNS] = {
		[C_ID] = f->id, [C_AT] = f->at, [C_JOB] = f->job,
		[C_ATTEMPT] = f->attempt, [C_NEXT] = op->next,
		[C_STATE] = again ? next->state : f->state,
		[C_MISSED] = f->missed, [C_FIRED] = f->fired, [C_OUTCOME] = op->line.outcome,
		[C_STATUS] = op->line.status, [C_BEGAN] = op->line.began,
		[C_ENDED] = op->line.ended, [C_DROPPED] = op->line.drop, [C_TRIES] = next->tries,
		[C_WAKE] = next->wake,
	};

	for (int c = 0; c < NR_COLUMNS; c++)
		set_value(lane->values[c], i, values[c]);
}

/* Make room for @nr operations. Returns false if there is no memory; what there was stays. */
static bool make_room(struct lane *lane, size_t nr)
{
	struct op **order;

	if (nr <= lane->room)
		return true;
	order = reallocarray(lane->order, nr, sizeof(*order));
	if (!order)
		return false;
	lane->order = order;
	for (int c = 0; c < NR_COLUMNS; c++) {
		int32_t *more = reallocarray(lane->values[c], ARRAY_HEAD + 3 * nr, sizeof(*more));

		if (!more)
			return false;
		lane->values[c] = more;
	}
	lane->room = nr;
	return true;
}

/*
 * Write @nr operations into the columns, sorted by kind, those of one kind in their order. @last
 * becomes where each kind ends.
 */
static void set_columns(struct lane *lane, struct op *ops, size_t nr, size_t last[NR_OPS])
{
	lane->nr = 0;
	for (int kind = 0; kind < NR_OPS; kind++) {
		for (size_t i = 0; i < nr; i++) {
			if (kind_of(&ops[i]) != (enum kind_of_op)kind)
				continue;
			set_op(lane, lane->nr, &ops[i]);
			lane->order[lane->nr++] = &ops[i];
		}
		last[kind] = lane->nr;
	}
	for (int c = 0; c < NR_COLUMNS; c++)
		set_head(lane->values[c], nr);
}

/* Add a parameter, an array of @nr numbers that set_head() and set_value() have written. */
static void add_array(struct params *p, const int32_t *array, size_t nr)
{
	p->type[p->nr] = OID_INT8S;
	p->value[p->nr] = (const char *)array;
	p->size[p->nr] = (int)((ARRAY_HEAD + 3 * nr) * sizeof(*array));
	p->format[p->nr++] = 1;
}

/*
 * Was @op done, if the server's answer does not name it? READY, AGAIN and END count as done. The
 * others were done if their kind is in @all. See twheel.turn().
 */
static void suppose(struct op *op, const bool all[NR_OPS])
{
	enum kind_of_op kind = kind_of(op);

	op->done = kind == OPS_READY || kind == OPS_AGAIN || kind == OPS_END || all[kind];
}

/* Note which operations of a turn the server has done. Copy the texts, since @result is freed. */
static void take_done(struct pg *s, const struct lane *lane, const PGresult *result)
{
	bool all[NR_OPS] = { 0 };

	for (int row = 0; row < PQntuples(result); row++)
		if (number_at(result, row, 0) < 0)
			all[-number_at(result, row, 0) - 1] = true;
	for (size_t i = 0; i < lane->nr; i++)
		suppose(lane->order[i], all);
	for (int row = 0; row < PQntuples(result); row++) {
		int64_t i = number_at(result, row, 0);
		struct op *op;

		s->store.lost |= i == WRITTEN;
		if (i <= 0)
			continue;
		op = lane->order[i - 1];
		op->done = true;
		if (op->type == OP_ADD)
			op->line.firing.id = number_at(result, row, 1);
		if (op->type == OP_FIRE && !PQgetisnull(result, row, 2))
			op->line.firing.arg = strdup(PQgetvalue(result, row, 2));
	}
}

/* Wait until a statement was sent completely. Returns false if that fails, or takes too long. */
static bool flushed(struct pg *s, PGconn *conn)
{
	int64_t until = latest(s);
	int left;

	while ((left = PQflush(conn)) > 0 && wait_for(conn, true, until))
		;
	return !left;
}

/* Prepare the statement of a turn on the lane's connection, so that it is planned only once. */
static int prepare_turn(struct pg *s, struct lane *lane, const struct params *p)
{
	static const char text[] =
		"SELECT * FROM twheel.turn($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,"
		" $14, $15, $16, $17, $18, $19, $20)";
	struct params me = { 0 };
	int sent, err;

	if (lane->prepared == s->store.connection)
		return 0;
	add_number(&me, s->store.life);
	sent = PQsendQuery(lane->conn, "SET plan_cache_mode = force_generic_plan");
	PQclear(result_on(s, lane->conn, sent, &err));
	if (err)
		return err;
	sent = PQsendPrepare(lane->conn, "turn", text, p->nr, p->type);
	PQclear(result_on(s, lane->conn, sent, &err));
	if (!err)
		PQclear(call_on(s, lane->conn, "SELECT twheel.mark($1)", &me, &err));
	if (!err)
		lane->prepared = s->store.connection;
	return err;
}

/*
 * Send the turn that is in the columns of the lane, with the number after its last one. @last says
 * where each kind of operations ends. Does not wait for the answer.
 */
static int send_turn(struct pg *s, struct lane *lane, const int32_t *last, bool tell)
{
	struct params p = { 0 };
	int err;

	add_number(&p, s->store.life);
	add_number(&p, lane - s->lanes);
	add_number(&p, lane->turn + 1);
	add_array(&p, last, NR_OPS);
	for (int c = 0; c < NR_COLUMNS; c++)
		add_array(&p, lane->values[c], lane->nr);
	add_number(&p, tell);
	err = prepare_turn(s, lane, &p);
	if (err)
		return err;
	crash_point("before a turn");
	if (!PQsendQueryPrepared(lane->conn, "turn", p.nr, p.value, p.size, p.format, 0))
		return unusable(s, lane->conn, NULL);
	lane->sent = s->store.connection;
	lane->answered = false;
	if (!flushed(s, lane->conn))
		return unusable(s, lane->conn, "the server does not answer");
	crash_point("a turn was sent");
	return 0;
}

/*
 * Give the server a turn; pg_turned() takes the answer. If this fails, the same turn may be sent
 * again: by its number the server knows whether it has written it.
 */
static int pg_turn(struct store *store, int nr_lane, struct op *ops, size_t nr, int64_t now)
{
	struct pg *s = to_pg(store);
	struct lane *lane = &s->lanes[nr_lane];
	int32_t last[ARRAY_HEAD + 3 * NR_OPS];
	size_t ends[NR_OPS];
	bool tell;
	int err = reachable(s);

	if (err)
		return err;
	if (!make_room(lane, nr))
		return fail(s, -ENOMEM, "no memory");
	set_columns(lane, ops, nr, ends);
	set_head(last, NR_OPS);
	for (size_t i = 0; i < NR_OPS; i++)
		set_value(last, i, (int64_t)ends[i]);
	now = boot_us();	/* this is for NOTIFY: what is due, the server knows by itself */
	tell = ends[OPS_ADD] && now - s->notified > NOTIFY_US;
	if (tell)
		s->notified = now;
	return send_turn(s, lane, last, tell);
}

/*
 * If the connections were lost before the answer was complete, it is not known whether the turn was
 * written. The turn keeps its number and is sent again.
 */
static int pg_turned(struct store *store, int nr_lane, bool wait)
{
	struct pg *s = to_pg(store);
	struct lane *lane = &s->lanes[nr_lane];
	PGresult *result;
	int err;

	if (is_under_way(s, lane))
		hear(s, lane, wait);
	if (is_under_way(s, lane))
		return -EAGAIN;
	result = lane->answer;
	lane->answer = NULL;
	lane->sent = 0;
	if (!lane->answered) {
		PQclear(result);
		return fail(s, -EIO, "the connection was lost");
	}
	result = checked(s, lane->conn, result, true, &err);
	crash_point("after a turn");
	if (err)
		return err;
	lane->turn++;
	take_done(s, lane, result);
	PQclear(result);
	return 0;
}

/* ---- opening ------------------------------------------------------------------------ */

static const char *pg_error(struct store *store)
{
	return to_pg(store)->error;
}

static void pg_close(struct store *store)
{
	struct pg *s = to_pg(store);

	let_go(s);
	for (struct lane *lane = s->lanes; lane < s->lanes + LANES; lane++) {
		PQclear(lane->answer);
		free(lane->order);
		for (int c = 0; c < NR_COLUMNS; c++)
			free(lane->values[c]);
	}
	PQconninfoFree(s->options);
	drop(&s->search);
	forget_addresses(&s->search);
	free(s->search.good);
	free(s->since);
	free(s->name);
	free(s);
}

static const struct store_ops pg_ops = {
	.queries = {
		/* In the order of one index, so that it ends at the limit, however much is due. */
		[Q_WINDOW] = "SELECT id, job, at FROM due WHERE off = 0 AND at >= $1 AND at < $2"
			     " AND (SELECT twheel.mine($4)) >> part & 1 = 1 ORDER BY at LIMIT $3",
		/*
		 * A log is on the machine of its life. After a day any machine deletes the row.
		 * Until then the rows of other machines are not walked: each life is looked up.
		 */
		[Q_EXPIRED] = "SELECT h.* FROM life l, LATERAL (SELECT seq, id, at, job, life,"
			      " attempt, outcome, more, missed, status, fired, began, ended,"
			      " dropped FROM history WHERE life = l.id AND dropped >= $1 AND"
			      " dropped <= $2 -"
			      " CASE WHEN l.name = (SELECT name FROM life WHERE id = $4) THEN 0"
			      " ELSE 86400000000 END ORDER BY dropped LIMIT $3) h LIMIT $3",
	},
	.close = pg_close, .error = pg_error, .join = pg_join, .leave = pg_leave, .beat = pg_beat,
	.keep = pg_keep, .news = pg_news, .turn = pg_turn, .turned = pg_turned, .begin = pg_begin,
	.end = pg_end, .query = pg_query, .number = pg_number, .text = pg_text,
};

/* Do daemons of another version share the store? Then the functions that they call must stay. */
static int check_lives(struct pg *s)
{
	struct params none = { 0 };
	int64_t nr = 0;
	int err = ask(s, "SELECT count(*) FROM twheel.node WHERE lease_until > clock_timestamp()",
		      &none, &nr);

	if (!err && nr)
		err = fail(s, -EBUSY, "daemons of another version share it, and have to end first: "
			   "%lld of them", (long long)nr);
	return err;
}

/* The database must be able to store any text. SQL_ASCII can, as it does not look at the bytes. */
static int check_encoding(struct pg *s)
{
	const char *name = PQparameterStatus(s->conn, "server_encoding");

	if (!name || !strcmp(name, "UTF8") || !strcmp(name, "SQL_ASCII"))
		return 0;
	return fail(s, -EINVAL, "the encoding of the database is %s, not UTF8", name);
}

/* Create the tables, if they do not exist, or make them those of our version. */
static int make_tables(struct pg *s)
{
	struct params none = { 0 };
	int64_t have = 0;
	int err = ask(s, "SELECT count(*) FROM pg_tables WHERE schemaname = 'twheel' AND"
		      " tablename = 'version'", &none, &have);

	if (!err)
		err = check_encoding(s);
	if (!err && !have)
		return command(s, tables);
	if (!err)
		err = ask(s, "SELECT id FROM twheel.version", &none, &have);
	if (!err && (have < 1 || have > SCHEMA_VERSION))
		err = fail(s, -EINVAL, "its version is %lld, and this twheeld knows %d",
			   (long long)have, SCHEMA_VERSION);
	if (!err && have < SCHEMA_VERSION)
		err = check_lives(s);
	/* This may take long: wait in any case. */
	s->until = INT64_MAX;
	for (int64_t v = have; !err && v < SCHEMA_VERSION; v++)
		err = command(s, steps[v]);
	s->until = 0;
	return err;
}

/* If another version has made the functions, make ours. */
static int make_code(struct pg *s)
{
	struct params p = { 0 };
	int64_t same = 0, is_new = 0;
	int err;

	add_text(&p, code);
	err = ask(s, "SELECT CAST(code = md5($1) AS int) FROM twheel.version", &p, &same);
	if (err || same)
		return err;
	err = ask(s, "SELECT CAST(code = '' AS int) FROM twheel.version",
		  &(struct params) { 0 }, &is_new);
	if (!err && !is_new)
		err = check_lives(s);
	if (!err)
		err = command(s, code);
	add_number(&p, SCHEMA_VERSION);
	return err ? err : ask(s, "UPDATE twheel.version SET code = md5($1), id = $2 RETURNING id",
			       &p, &same);
}

/*
 * Wait until no other daemon sets the store up. Converting the tables of a long history may take
 * hours. So ask again and again: then each answer comes in time, and a connection that was lost is
 * noticed.
 */
static int lock_tables(struct pg *s)
{
	struct params none = { 0 };
	int64_t have = 0;
	int err = command(s, "BEGIN");

	while (!err) {
		err = ask(s, "SELECT CAST(pg_try_advisory_xact_lock(7481) AS int)", &none, &have);
		if (have)
			break;
		poll(NULL, 0, 100);
	}
	return err;
}

/* Set up all or nothing, one daemon at a time. */
static int set_up(struct pg *s)
{
	int err = lock_tables(s);

	if (!err)
		err = make_tables(s);
	if (!err)
		err = make_code(s);
	return err ? err : command(s, "COMMIT");
}

/*
 * Let libpq parse the connection string, and read what that refers to: the environment, or a file
 * of services. libpq does this only when it begins to connect.
 */
static int read_options(struct pg *s, const char *where)
{
	PGconn *conn = PQconnectStart(where);
	int err = 0;

	if (conn && PQuser(conn))
		s->options = PQconninfo(conn);
	if (!s->options)
		err = fail(s, -EINVAL, "%s", conn ? PQerrorMessage(conn) : "no memory");
	PQfinish(conn);
	return err;
}

static int pg_open(struct store **store, const char *where, const char *name, int64_t lease,
		   char *error, size_t size)
{
	struct pg *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->store = (struct store) { .ops = &pg_ops, .many = true, .lease = lease };
	s->patience = PATIENCE_MIN;
	let_go(s);
	s->name = strdup(name);
	err = s->name ? read_options(s, where) : fail(s, -ENOMEM, "no memory");
	if (!err)
		err = connected(s);
	if (!err)
		err = set_up(s);
	if (err) {
		snprintf(error, size, "%s", s->error);
		pg_close(&s->store);
		return err;
	}
	*store = &s->store;
	return 0;
}

const struct store_module twheeld_postgresql = { .version = TWHEEL_VERSION, .open = pg_open };
