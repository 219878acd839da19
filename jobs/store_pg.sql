-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The twheel authors
-- What daemons of one version share in PostgreSQL: which of them live, and the functions that they call there. See
-- store_pg.c. If a daemon finds what another version has made, it makes all of this anew, unless a daemon lives.
-- Times are us since 1970 by the server's clock; those of leases are timestamps.
--
-- If a statement is sent as one message, the server executes all of it or nothing, even if the
-- sender dies. So a turn is one call of a function. Locks are taken in the order node, lane, job, due.

-- The functions of all versions, and no other ones that somebody may have there.
DO $$
DECLARE
	f regprocedure;
BEGIN
	FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = CAST('twheel' AS regnamespace) AND p.proname IN (
			'balance', 'beat', 'buried', 'bury', 'bury_late', 'cut', 'fence', 'forget', 'go_on', 'join_as',
			'last', 'late', 'leave', 'mark', 'mine', 'new_life', 'news', 'now_us', 'places', 'seen_last',
			'share', 'touched', 'turn', 'until') LOOP
		EXECUTE 'DROP FUNCTION ' || f;
	END LOOP;
END $$;
DROP TABLE IF EXISTS twheel.node, twheel.lane, twheel.past, twheel.seen;

-- A row is a life. lease is how long its lease is, in us, and lease_until when it ends: so it has renewed it for the last
-- time at lease_until - lease. If the server was away for a while, or its clock was set forward, all leases are over,
-- and those that live come back. So a life may bury another one only if it has itself been in touch with the server
-- since a whole lease of the other. since is when it was not, for the last time: see twheel.touched(). key is a random
-- number of the daemon, or 0. seen is the same of the life that left last.
CREATE TABLE twheel.node (
	id		bigserial PRIMARY KEY,
	key		bigint NOT NULL,
	name		text NOT NULL,
	lease		bigint NOT NULL,
	lease_until	timestamptz NOT NULL,
	since		timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE twheel.seen AS
	SELECT CAST('-infinity' AS timestamptz) AS last, CAST('-infinity' AS timestamptz) AS since;
-- Without a primary key, rows of a table that is published could not be changed otherwise.
ALTER TABLE twheel.seen REPLICA IDENTITY FULL;
ALTER TABLE twheel.inbox REPLICA IDENTITY FULL;
ALTER TABLE twheel.version REPLICA IDENTITY FULL;
-- A life writes turns in lanes, beside each other. turn is the number of the last one. To bury a life is
-- to delete its rows: that waits for what the life is writing, and whatever it writes after that fails.
CREATE TABLE twheel.lane (
	node		bigint,
	nr		int,
	turn		bigint NOT NULL DEFAULT 0,
	PRIMARY KEY (node, nr)
) WITH (fillfactor = 50);
-- The number of a life is never used twice: it is in rows of running and history.
SELECT setval('twheel.node_id_seq', max(id)) FROM twheel.life;

CREATE FUNCTION twheel.now_us() RETURNS bigint LANGUAGE sql AS
	$$ SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) $$;

CREATE FUNCTION twheel.until(lease bigint) RETURNS timestamptz LANGUAGE sql AS
	$$ SELECT clock_timestamp() + lease * interval '1 microsecond' $$;

-- When a life has renewed its lease for the last time.
CREATE FUNCTION twheel.last(n twheel.node) RETURNS timestamptz LANGUAGE sql AS
	$$ SELECT n.lease_until - n.lease * interval '1 microsecond' $$;

CREATE FUNCTION twheel.buried(me bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'life % was buried', me USING ERRCODE = 'TW001';
END $$;

-- Until this transaction is over, nobody can bury life me.
CREATE FUNCTION twheel.fence(me bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM twheel.node n WHERE n.id = me FOR KEY SHARE;
	IF NOT FOUND THEN
		PERFORM twheel.buried(me);
	END IF;
END $$;

-- A time that the clock has shown to a life, or 0.
CREATE FUNCTION twheel.seen_last() RETURNS bigint LANGUAGE sql AS $$
	SELECT coalesce(max(CAST(extract(epoch FROM t.last) * 1000000 AS bigint)), 0) FROM (SELECT twheel.last(n)
		FROM twheel.node n UNION ALL SELECT s.last FROM twheel.seen s) t(last) WHERE t.last > to_timestamp(0)
$$;

-- A life that was in touch with the server at last continues what began at since. But if that was longer ago than the
-- shortest lease, the server may have been away, and this begins now. So it does if the clock was set back.
CREATE FUNCTION twheel.touched(last timestamptz, since timestamptz) RETURNS timestamptz LANGUAGE sql AS $$
	SELECT CASE WHEN last BETWEEN (SELECT twheel.until(-min(n.lease)) FROM twheel.node n) AND clock_timestamp()
		THEN least(since, clock_timestamp()) ELSE clock_timestamp() END
$$;

-- The caller is a session of life me. Whoever buries a life ends its sessions by this lock.
CREATE FUNCTION twheel.mark(me bigint) RETURNS void LANGUAGE sql AS
	$$ SELECT pg_advisory_lock_shared((CAST(7484 AS bigint) << 32) + me) $$;

-- End the sessions of a life that is over, or has lost its connections, except the caller's. The server may not have
-- noticed: while it sends an answer to a machine that is away, or to a process that is stopped, it keeps the locks of
-- the transaction for as long as TCP tries. All daemons log in as the same role, whichever role they take on then. If
-- the sessions are of a role that the caller's may not end, they stay.
CREATE FUNCTION twheel.cut(old bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	was text := current_setting('role');
BEGIN
	PERFORM set_config('role', 'none', true);
	PERFORM pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
		WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.classid = 7484 AND l.objsubid = 1
			AND CAST(l.objid AS bigint) = old AND l.pid <> pg_backend_pid();
	PERFORM set_config('role', was, true);
EXCEPTION WHEN insufficient_privilege THEN
	NULL;
END $$;

-- The row of the node is locked first, so that its lease is not renewed meanwhile.
CREATE FUNCTION twheel.bury(old bigint) RETURNS void LANGUAGE sql AS $$
	SELECT FROM twheel.node WHERE id = old FOR UPDATE;
	DELETE FROM twheel.lane WHERE node = old;
	DELETE FROM twheel.node WHERE id = old;
$$;

CREATE FUNCTION twheel.new_life(key bigint, name text, lease bigint, since timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	me bigint;
BEGIN
	INSERT INTO twheel.node (key, name, lease, lease_until, since)
		VALUES (key, name, lease, twheel.until(lease), since) RETURNING id INTO me;
	INSERT INTO twheel.life VALUES (me, name);
	PERFORM twheel.mark(me);
	RETURN me;
END $$;

-- Forget the lives that nothing names any more. Otherwise there would be one more for each connection that was ever
-- lost. Only rows of running, of tasks and of the history say which life has a log, and only a life that is not over
-- adds such rows of its own. A line of the history is about a life that its row of running has named. So once nothing
-- names a life that is over, nothing ever will. One statement sees one moment. The last life stays, since no number
-- may be used twice. To forget many takes its time, and who begins a life has little.
CREATE FUNCTION twheel.forget() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF NOT pg_try_advisory_xact_lock(7483) THEN
		RETURN;
	END IF;
	DELETE FROM twheel.life WHERE id IN (SELECT l.id FROM twheel.life l
		WHERE l.id < (SELECT max(m.id) FROM twheel.life m)
			AND l.id <> ALL (ARRAY(SELECT n.id FROM twheel.node n UNION SELECT r.life FROM twheel.running r
				UNION SELECT t.life FROM twheel.task t))
			AND NOT EXISTS (SELECT FROM twheel.history h WHERE h.life = l.id)
		LIMIT 10000);
END $$;

-- Begin a life, with this key. The life whose key was old, if there is one, is certainly over. Its number alone would
-- not do: the daemon may have had that from another store, or from this one before it was restored. A life that has this
-- key already is over, too: the last daemon that had the caller's directory began it, and died before it knew. code is
-- the MD5 of the caller's text of this file: since the caller has looked whether the functions are those of its version,
-- a daemon of another version may have made its own. The lock is that under which they are made.
CREATE FUNCTION twheel.join_as(old bigint, name text, lease bigint, key bigint, code text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	came timestamptz;
	me bigint;
BEGIN
	PERFORM pg_advisory_xact_lock_shared(7481);
	IF NOT EXISTS (SELECT FROM twheel.version v WHERE v.code = join_as.code) THEN
		RAISE EXCEPTION 'a daemon of another version has begun' USING ERRCODE = 'TW002';
	END IF;
	-- The server was there for others. Also for our last life, which may itself have waited for those that come back.
	SELECT min(twheel.touched(t.last, t.since)) INTO came FROM (SELECT twheel.last(n), n.since
		FROM twheel.node n UNION ALL SELECT s.last, s.since FROM twheel.seen s) t(last, since);
	PERFORM twheel.cut(n.id), twheel.bury(n.id) FROM twheel.node n
		WHERE n.key IN (old, join_as.key) AND n.key <> 0;
	IF FOUND THEN
		-- We take no more than our share of what that life had: others need not wait for their next beat.
		PERFORM pg_notify('twheel', 'lives');
	END IF;
	-- We see what was written by transactions that are over. If it says another one, it is of the server from
	-- which this database was restored.
	DELETE FROM twheel.inbox i
		WHERE i.xid >= CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint);
	me := twheel.new_life(key, name, lease, came);
	INSERT INTO twheel.lane SELECT me, generate_series(0, 1);	-- LANES of store.h
	PERFORM twheel.forget();
	RETURN me;
END $$;

-- The life old has lost its connections, and the server may still execute what it sent last. That is ended, and is over
-- when its lanes can be changed. Then all that old has goes to a new life.
CREATE FUNCTION twheel.go_on(old bigint, name text, lease bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	was twheel.node;
	me bigint;
BEGIN
	PERFORM twheel.cut(old);
	SELECT * INTO was FROM twheel.node n WHERE n.id = old FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM twheel.buried(old);
	END IF;
	me := twheel.new_life(was.key, name, lease, twheel.touched(twheel.last(was), was.since));
	UPDATE twheel.lane l SET node = me WHERE l.node = old;
	DELETE FROM twheel.node n WHERE n.id = old;
	UPDATE twheel.running r SET life = me WHERE r.life = old;
	UPDATE twheel.part p SET node = me WHERE p.node = old;
	PERFORM twheel.forget();
	RETURN me;
END $$;

CREATE FUNCTION twheel.leave(me bigint) RETURNS void LANGUAGE sql AS $$
	SELECT FROM twheel.node WHERE id = me FOR UPDATE;
	UPDATE twheel.seen s SET last = clock_timestamp(), since = n.since FROM twheel.node n WHERE n.id = me;
	SELECT twheel.bury(me);
	UPDATE twheel.part SET node = NULL WHERE node = me;
	SELECT pg_notify('twheel', 'lives');
$$;

-- The lives that life me may bury.
CREATE FUNCTION twheel.late(me bigint) RETURNS SETOF bigint LANGUAGE sql AS $$
	SELECT o.id FROM twheel.node n JOIN twheel.node o ON o.lease_until < clock_timestamp()
	WHERE n.id = me AND n.since < twheel.until(-o.lease)
$$;

-- How many parts each life is to have: all, divided by the number of lives, rounded up.
CREATE FUNCTION twheel.share() RETURNS bigint LANGUAGE sql AS
	$$ SELECT (64 + count(*) - 1) / greatest(count(*), 1) FROM twheel.node $$;

CREATE FUNCTION twheel.mine(me bigint) RETURNS bigint LANGUAGE sql AS
	$$ SELECT coalesce(bit_or(CAST(1 AS bigint) << id), 0) FROM twheel.part WHERE node = me $$;

-- Renew the lease. If me has another key, the tables were made anew or restored, and it is another daemon's number.
-- Returns the time, whether balance() has something to do, and the parts of me.
CREATE FUNCTION twheel.beat(me bigint, key bigint, lease bigint) RETURNS TABLE (clock bigint, todo int, parts bigint)
LANGUAGE plpgsql AS $$
DECLARE
	have bigint;
BEGIN
	UPDATE twheel.node n SET lease_until = twheel.until(beat.lease), since = CASE
		WHEN n.lease_until < clock_timestamp() THEN clock_timestamp() ELSE n.since END
		WHERE n.id = me AND n.key = beat.key;
	IF NOT FOUND THEN
		PERFORM twheel.buried(me);
	END IF;
	-- The server's clock was set back: nobody has a lease that ends later than if it began now.
	UPDATE twheel.node n SET lease_until = twheel.until(n.lease), since = least(n.since, clock_timestamp())
		WHERE n.id IN (SELECT o.id FROM twheel.node o
			WHERE o.lease_until > twheel.until(o.lease) OR o.since > clock_timestamp()
			FOR NO KEY UPDATE SKIP LOCKED);
	DELETE FROM twheel.inbox i WHERE i.made < now() - interval '10 minutes';
	SELECT count(*) INTO have FROM twheel.part p WHERE p.node = me;
	todo := CAST(have > twheel.share() OR
		EXISTS (SELECT FROM twheel.late(me)) OR
		(have < twheel.share() AND EXISTS (SELECT FROM twheel.part p LEFT JOIN twheel.node n
			ON n.id = p.node WHERE n.id IS NULL)) AS int);
	clock := twheel.now_us();
	parts := twheel.mine(me);
	RETURN NEXT;
END $$;

-- Bury life old, if its lease is still over when its row is locked. If it still writes something, and its sessions could
-- not be ended, it is not buried this time: those that live do not wait for it.
CREATE FUNCTION twheel.bury_late(old bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM twheel.node n WHERE n.id = old AND n.lease_until < clock_timestamp() FOR NO KEY UPDATE;
	IF FOUND THEN
		PERFORM twheel.cut(old), twheel.bury(old);
	END IF;
EXCEPTION WHEN lock_not_available THEN
	NULL;
END $$;

-- Bury lives whose leases are over. Then, up to the share of me, take parts that have no owner, or
-- give up parts in which nothing runs. Returns the parts of me. All lives do this one at a time. If another one does it
-- for long, or a daemon is being set up, this does nothing: the next beat will see that there is something to do.
CREATE FUNCTION twheel.balance(me bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	have bigint;
BEGIN
	PERFORM set_config('lock_timeout', '500ms', true);
	BEGIN
		PERFORM pg_advisory_xact_lock(7481);
	EXCEPTION WHEN lock_not_available THEN
		RETURN twheel.mine(me);
	END;
	PERFORM twheel.bury_late(o) FROM twheel.late(me) o;
	SELECT count(*) INTO have FROM twheel.part p WHERE p.node = me;
	IF NOT EXISTS (SELECT FROM twheel.node n WHERE n.id = me) THEN
		PERFORM twheel.buried(me);
	ELSIF have > twheel.share() THEN
		UPDATE twheel.part SET node = NULL WHERE id IN (SELECT p.id FROM twheel.part p
			WHERE p.node = me AND NOT EXISTS (SELECT FROM twheel.running r
				WHERE CAST(r.job & 63 AS int) = p.id)
			ORDER BY p.id * 29 % 64 LIMIT have - twheel.share());
		IF FOUND THEN
			PERFORM pg_notify('twheel', 'lives');
		END IF;
	ELSIF have < twheel.share() THEN
		UPDATE twheel.part SET node = me WHERE id IN (SELECT p.id FROM twheel.part p
			LEFT JOIN twheel.node n ON n.id = p.node WHERE n.id IS NULL
			ORDER BY p.id * 29 % 64 LIMIT twheel.share() - have);
	END IF;
	RETURN twheel.mine(me);
END $$;

-- The news that who had the snapshot since did not see, and the since of the next call. If there is no news, one row
-- of which only the latter is not NULL. A transaction may stay open for long, of whatever database of the server. So
-- the oldest one that was open is not enough to say what was seen.
CREATE FUNCTION twheel.news(me bigint, since pg_snapshot)
RETURNS TABLE (next text, type smallint, job bigint, id bigint, at bigint) LANGUAGE sql AS $$
	SELECT CAST(pg_current_snapshot() AS text), i.type, i.job, i.id, i.at
	FROM (VALUES (1)) one LEFT JOIN twheel.inbox i ON i.life <> me
		AND i.xid >= CAST(CAST(pg_snapshot_xmin(since) AS text) AS bigint)
		AND NOT pg_visible_in_snapshot(CAST(CAST(i.xid AS text) AS xid8), since)
$$;

-- The operations of a turn, one by one. The function claims to return one row, so that the planner looks up
-- the rows of each operation by their key. Otherwise it would plan by the last statistics of the tables,
-- which may have been almost empty then.
CREATE FUNCTION twheel.places(a int, b int) RETURNS SETOF int ROWS 1 LANGUAGE sql AS
	$$ SELECT generate_series(a, b) $$;

-- Turn nr of a lane of life me: if it was written already this only says what was done. If it is neither that nor
-- the next one, the tables were restored. The columns of all operations are arrays, in the order of kinds, ends[kind]
-- being the last of each: 1 add; 2 fire what is due once, 3 fire the rest; 4 leave; 5 again; 6 ready; 7 end; 8 move.
-- Returned are the operations that were done, of kinds 1 to 4 and 8: the number of a new row, and the argument of a
-- firing. Operation 0: this turn had been written before. A negative number: all of that kind were done, and only those
-- with an argument are returned.
--
-- Nobody takes a part from a life of which a lane is locked, so parts are looked up once. The connections of
-- lanes make each plan once: to plan a small turn, and even to begin a statement that has nothing to do, takes
-- longer than to do the turn. So there may be only one plan, however small the table was when that was made: to look
-- each row up by its primary key. If the statistics say that a table is empty, as they do of twheel.running after a
-- vacuum at a quiet moment, it costs the planner as little to read all of the table and to look through the operations
-- for each row. For an id that equals another it considers that, since both would be in the order of a merge; for one
-- that is BETWEEN the other and itself it cannot. And it is at + 0 and off + 0 that are compared, so that due_at is no
-- choice, where very many rows may have the same time.
CREATE FUNCTION twheel.turn(me bigint, lane bigint, nr bigint, ends bigint[], id bigint[], at bigint[], job bigint[],
	attempt bigint[], next bigint[], state bigint[], missed bigint[],
	fired bigint[], outcome bigint[], status bigint[], began bigint[], ended bigint[],
	dropped bigint[], tries bigint[], wake bigint[], tell bigint)
RETURNS TABLE (op bigint, made bigint, its_arg text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	a int;
	b int;
	clock bigint;
	parts bigint;
BEGIN
	UPDATE twheel.lane l SET turn = turn.nr
		WHERE l.node = me AND l.nr = turn.lane AND l.turn = turn.nr - 1;
	IF NOT FOUND THEN
		IF NOT EXISTS (SELECT FROM twheel.lane l WHERE l.node = me AND l.nr = turn.lane AND l.turn = turn.nr) THEN
			PERFORM twheel.buried(me);
		END IF;
		RETURN QUERY SELECT CAST(0 AS bigint), CAST(0 AS bigint), NULL;
		RETURN QUERY SELECT u.i, CAST(0 AS bigint), r.arg
			FROM unnest(turn.id[1:ends[3]], turn.at[1:ends[3]]) WITH ORDINALITY u(id, at, i)
			JOIN twheel.running r ON r.id BETWEEN u.id AND u.id AND r.at = u.at WHERE u.i > ends[1];
		RETURN;
	END IF;
	clock := twheel.now_us();
	SELECT coalesce(bit_or(CAST(1 AS bigint) << p.id), 0) INTO parts FROM twheel.part p WHERE p.node = me;

	b := ends[1];
	IF b > 0 THEN
		RETURN QUERY WITH u AS MATERIALIZED (
			SELECT u.i, u.job, u.next, j.paused,
				nextval('twheel.due_id_seq') AS new, p.node IS NOT DISTINCT FROM me AS ours
			FROM unnest(turn.job[1:b], turn.next[1:b]) WITH ORDINALITY u(job, next, i)
			JOIN twheel.job j ON j.id BETWEEN u.job AND u.job AND j.name IS NOT NULL
			JOIN twheel.part p ON p.id = CAST(j.id & 63 AS int) FOR SHARE OF j),
		added AS (
			INSERT INTO twheel.due (id, job, at, off, main)
			SELECT u.new, u.job, u.next, u.paused, 0 FROM u),
		told AS (
			INSERT INTO twheel.inbox (life, type, job, id, at)
			SELECT me, 1, u.job, u.new, u.next FROM u WHERE NOT u.ours AND u.paused = 0)
		SELECT u.i, u.new, NULL FROM u WHERE u.ours AND u.paused = 0;
		IF tell > 0 AND EXISTS (SELECT FROM twheel.inbox i
				WHERE i.xid = CAST(CAST(pg_current_xact_id() AS text) AS bigint)) THEN
			PERFORM pg_notify('twheel', '');
		END IF;
	END IF;

	a := b + 1; b := ends[2];
	IF b >= a THEN
		RETURN QUERY WITH gone AS (
			DELETE FROM twheel.due d USING twheel.places(a, b) i
			WHERE d.id BETWEEN turn.id[i] AND turn.id[i] AND d.at + 0 = turn.at[i] AND d.off + 0 = 0
				AND turn.at[i] <= clock AND parts >> d.part & 1 = 1
			RETURNING i, turn.at[i] AS at, d.job, d.arg),
		fired AS (
			INSERT INTO twheel.running (id, at, job, life, attempt, tries, state, missed, wake,
				fired, arg)
			SELECT turn.id[i], x.at, x.job, me, 1, 0, turn.state[i], turn.missed[i], 0,
				turn.fired[i], x.arg FROM gone x),
		nr AS (SELECT count(*) AS done FROM gone)
		SELECT CAST(-2 AS bigint), CAST(0 AS bigint), NULL FROM nr WHERE nr.done > b - a
		UNION ALL
		SELECT CAST(x.i AS bigint), CAST(0 AS bigint), x.arg FROM nr, gone x
		WHERE nr.done <= b - a OR x.arg IS NOT NULL;
	END IF;

	a := b + 1; b := ends[3];
	IF b >= a THEN
		RETURN QUERY WITH moved AS (
			UPDATE twheel.due d SET at = turn.next[i] FROM twheel.places(a, b) i
			WHERE d.id BETWEEN turn.id[i] AND turn.id[i] AND d.at + 0 = turn.at[i] AND d.off + 0 = 0
				AND turn.at[i] <= clock AND parts >> d.part & 1 = 1
			RETURNING i, turn.at[i] AS at, d.job, d.arg),
		fired AS (
			INSERT INTO twheel.running (id, at, job, life, attempt, tries, state, missed, wake,
				fired, arg)
			SELECT turn.id[i], x.at, x.job, me, 1, 0, turn.state[i], turn.missed[i], 0,
				turn.fired[i], x.arg FROM moved x),
		nr AS (SELECT count(*) AS done FROM moved)
		SELECT CAST(-3 AS bigint), CAST(0 AS bigint), NULL FROM nr WHERE nr.done > b - a
		UNION ALL
		SELECT CAST(x.i AS bigint), CAST(0 AS bigint), x.arg FROM nr, moved x
		WHERE nr.done <= b - a OR x.arg IS NOT NULL;
	END IF;

	a := b + 1; b := ends[4];
	IF b >= a THEN
		RETURN QUERY WITH moved AS (
			UPDATE twheel.due d SET at = turn.next[i] FROM twheel.places(a, b) i
			WHERE d.id BETWEEN turn.id[i] AND turn.id[i] AND d.at + 0 = turn.at[i] AND d.off + 0 = 0
				AND turn.next[i] > 0 AND turn.at[i] <= clock AND parts >> d.part & 1 = 1
			RETURNING i, turn.at[i] AS at, d.job, d.arg),
		gone AS (
			DELETE FROM twheel.due d USING twheel.places(a, b) i
			WHERE d.id BETWEEN turn.id[i] AND turn.id[i] AND d.at + 0 = turn.at[i] AND d.off + 0 = 0
				AND turn.next[i] = 0 AND turn.at[i] <= clock AND parts >> d.part & 1 = 1
			RETURNING i, turn.at[i] AS at, d.job, d.arg),
		done AS (TABLE moved UNION ALL TABLE gone),
		left_out AS (
			INSERT INTO twheel.history (id, at, job, life, attempt, outcome, more, missed,
				status, fired, began, ended, dropped)
			SELECT turn.id[i], x.at, x.job, me, 0, turn.outcome[i], 0, turn.missed[i], -1,
				turn.fired[i], 0, turn.ended[i], turn.dropped[i] FROM done x),
		nr AS (SELECT count(*) AS done FROM done)
		SELECT CAST(-4 AS bigint), CAST(0 AS bigint), NULL FROM nr WHERE nr.done > b - a
		UNION ALL
		SELECT CAST(x.i AS bigint), CAST(0 AS bigint), x.arg FROM nr, done x
		WHERE nr.done <= b - a OR x.arg IS NOT NULL;
	END IF;

	a := b + 1; b := ends[5];
	IF b >= a THEN
		WITH u AS MATERIALIZED (
			SELECT * FROM unnest(turn.id[a:b], turn.at[a:b], turn.job[a:b],
				turn.attempt[a:b], turn.state[a:b], turn.missed[a:b], turn.fired[a:b],
				turn.outcome[a:b], turn.status[a:b], turn.began[a:b], turn.ended[a:b],
				turn.dropped[a:b], turn.tries[a:b], turn.wake[a:b])
				u(id, at, job, attempt, state, missed, fired, outcome, status, began,
				ended, dropped, tries, wake)),
		again AS (
			UPDATE twheel.running r SET attempt = u.attempt + 1, tries = u.tries,
				state = CASE WHEN r.state = 3 THEN 3 ELSE u.state END,
				wake = u.wake, life = me
			FROM u JOIN twheel.running o ON o.id BETWEEN u.id AND u.id AND o.at = u.at
			WHERE r.id BETWEEN u.id AND u.id AND r.at = u.at AND r.attempt = u.attempt
			RETURNING u.*, o.life AS was)
		INSERT INTO twheel.history (id, at, job, life, attempt, outcome, more, missed, status,
			fired, began, ended, dropped)
		SELECT x.id, x.at, x.job, x.was, x.attempt, x.outcome, 1, x.missed, x.status, x.fired,
			x.began, x.ended, x.dropped FROM again x;
	END IF;

	a := b + 1; b := ends[6];
	IF b >= a THEN
		-- What was killed (3) stays so, and stays the life's that has its log: another daemon
		-- may have written the kill, and the one whose turn this is does not know of it
		-- yet. The states are those of enum state in store.h: daemons that know others do
		-- not use this store, since a new state changes this comment too. 4: the run may
		-- begin at a runner.
		UPDATE twheel.running r SET state = u.state, life = CASE WHEN u.state = 3 THEN r.life ELSE me END
		FROM unnest(turn.id[a:b], turn.at[a:b], turn.attempt[a:b], turn.state[a:b]) u(id, at, attempt, state)
		WHERE r.id BETWEEN u.id AND u.id AND r.at = u.at AND r.attempt = u.attempt AND r.state <> 3;
	END IF;

	a := b + 1; b := ends[7];
	IF b >= a THEN
		WITH gone AS (
			DELETE FROM twheel.running r USING twheel.places(a, b) i
			WHERE r.id BETWEEN turn.id[i] AND turn.id[i] AND r.at = turn.at[i]
				AND r.attempt = turn.attempt[i]
			RETURNING r.id, r.at, r.job, r.life, r.attempt, turn.outcome[i], 0, r.missed,
				turn.status[i], r.fired, turn.began[i], turn.ended[i], turn.dropped[i])
		INSERT INTO twheel.history (id, at, job, life, attempt, outcome, more, missed, status,
			fired, began, ended, dropped) TABLE gone;
	END IF;

	a := b + 1; b := ends[8];
	IF b >= a THEN
		RETURN QUERY WITH moved AS (
			UPDATE twheel.due d SET at = u.next
			FROM unnest(turn.id[a:b], turn.next[a:b]) WITH ORDINALITY u(id, next, i)
			WHERE d.id BETWEEN u.id AND u.id AND d.at + 0 = 9223372036854775807 RETURNING u.i)
		SELECT x.i + a - 1, CAST(0 AS bigint), NULL FROM moved x;
	END IF;
END $$;
