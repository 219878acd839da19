#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
"""
place.py PROBE...: prove where wheel.h puts a timer, for all 0 <= clk <= E < 2^64.

The formula is that of wheel_place(), wheel_put() and wheel_set_clk(). It is written once here and
used twice: with z3's terms for E and clk, to prove the claims; and with numbers, to check that the
code computes the same. A PROBE is a program around wheel.h; it prints the formula's constants. A
claim is proved if z3 shows that there is no counterexample.

The first claims are that the formula is what the head of wheel.h says: a timer goes to the lowest
level with q_{l+1}(E) - q_{l+1}(clk) <= 1, into slot q_l(E) mod slots. The other claims follow from
that.

z3 is slow at dividing 64-bit vectors by constants. So all claims, except some about far timers, are
about integers: there x / k is a new variable q with k q <= x < k q + k, and everything is linear.
Integers do not wrap around. So one more claim is that the code's numbers do not wrap around either.

The invariants of the wheel rest on these claims:

  - A timer has one level, and a slot of that level. From now until the timer is due, the slot
    stands for no other q_l. So no timer is handed out in a tick that is not its own (never early).
  - If a timer is moved out of the current or the next bucket of its level, it falls by at least one
    level, and never into a bucket that is being emptied (at most four moves).
  - The event of a bucket is after clk, no later than any timer of the bucket is due, and early
    enough for moving these timers (never late).
  - A far timer stays in one class until that class has its turn. No two classes have a turn at the
    same time. During its turn a class gets no new timers. The turn ends before any timer of the
    class is due.
  - If a timer is put at a stop, the stop is of level 1 or 2, and after clk. Until the stop has
    come, its slot stands for no other stop. In the tick of the stop, the last stop's slot is its
    own, in each level that has a stop there.
  - If a bucket is emptied ahead of time, it owes in no tick more moves than when that began. So the
    numbers of timers in the next buckets bound the moves of a tick.

If a timer was put off, it is due at a later E than the one for which its bucket was chosen. The
claims about the bucket's event hold for the earlier E. The claims about where the timer moves hold
for any E.

If a claim depends on a constant of the design, it is also tried with a neighbouring constant.
There the claim must fail.
"""
import random
import subprocess
import sys

from z3 import And, BitVec, BitVecVal, If, Int, LShR, Not, Or, Solver, ULE, ULT
from z3 import sat, unsat

END = 2 ** 64
SEED = 1
RANDOM = 20000
HEAD = 7                    # a probe first prints so many lines of constants


class Geometry:
    def __init__(self, lines):
        rows = [[int(x) for x in line.split()] for line in lines[:HEAD]]
        self.radix, self.first, self.slots, self.width = zip(*rows[:5])
        self.far, self.nr_slots, self.big, self.w4 = rows[5]
        self.stop_first = (0,) + tuple(rows[6][:2])
        self.stop = (0,) + tuple(rows[6][2:])
        # For each level with stops: how many stops a bucket has, and how many slots the stops have.
        self.parts = (0, 1, self.width[2] // self.stop[2])
        self.stop_slots = (0, self.slots[1], self.slots[2] * self.parts[2])
        self.reach = 1


class Terms:
    """Integer variables of z3, and the constraints on them."""

    def __init__(self):
        self.known = []
        self.nr = 0
        self.quotients = {}

    def new(self, low, high):
        self.nr += 1
        x = Int(f"x{self.nr}")
        self.known += [x >= low, x < high]
        return x

    def div(self, x, k, near=0):
        """Add x / k as a new variable. Returns x / k. near: the quotient of a smaller x, to which
        the variable is the difference: z3 is faster with small numbers."""
        if (x, k) not in self.quotients:
            q = near + self.new(0, END)
            self.known += [k * q <= x, x < k * q + k]
            self.quotients[x, k] = q
        return self.quotients[x, k]


class Numbers:
    @staticmethod
    def div(x, k, _near=0):
        return x // k


def either(condition, yes, no):
    if isinstance(condition, bool):
        return yes if condition else no
    return If(condition, yes, no)


# The formula: what wheel.h computes, for z3's terms (math is a Terms) and for numbers (Numbers).

def quotients(math, g, x, near=(0,) * 6):
    """Returns x / width_l for each level, and x / span. Each is a division of the one before it.
    near: the same of a smaller x, see Terms.div()"""
    q = [x]
    for radix, n in zip(g.radix, near[1:]):
        q.append(math.div(q[-1], radix, n))
    return q


def current_slot(math, g, l, q):
    """Returns the slot of clk in level l, as wheel_slot() does; for the top level, as
    wheel_set_odometer() does. q: the quotients of clk"""
    if l == 4:
        return g.first[4] + q[4] - q[5] * g.radix[4]
    odd = q[l + 1] - 2 * math.div(q[l + 1], 2)
    return g.first[l] + odd * g.radix[l] + q[l] - q[l + 1] * g.radix[l]


def last(g, q, width):
    """Returns the last tick of bucket q of buckets of this width, as wheel_last() does."""
    return either(q < (END - 1) // width, (q + 1) * width - 1, END - 1)


def reach(g, l, qc):
    """Returns wheel->reach of level l, which is 0 to 2."""
    return last(g, qc[l + 1] + g.reach, g.width[l + 1])


def fits(g, l, qe, qc):
    """Does level l reach from clk to E? This is how wheel_place() decides it."""
    return qe[0] <= reach(g, l, qc) if l < 3 else reaches(g, l, qe, qc)


def ahead(g, l, here, d):
    """Returns the slot @d buckets after slot @here, as wheel_put_level() does."""
    return either(here + d >= g.first[l] + g.slots[l], here + d - g.slots[l], here + d)


def slot(math, g, l, qe, qc):
    return ahead(g, l, current_slot(math, g, l, qc), qe[l] - qc[l])


def offset(g, l, qe):
    """Returns how many ticks after the start of its bucket E is. If E is the bucket's min, the
    bucket's event is at this offset."""
    return qe[0] - qe[l] * g.width[l]


def event(g, l, qe):
    """Returns what wheel_put() returns for a timer that is alone in its bucket."""
    return qe[0]


def big_event(g, l, qe, ticks):
    """Returns what wheel_put() returns if the bucket is big and needs so many ticks to be drained:
    a tick within the preceding bucket. A bucket of level 0 is not drained."""
    if l == 0:
        return event(g, l, qe)
    return qe[0] - offset(g, l, qe) - either(ticks < g.width[l], ticks, g.width[l] - 1)


def horizon(g, q4):
    """Returns the last bucket of the top level that the wheel reaches, as wheel_horizon() does."""
    return q4 + g.radix[4] - 1


def far_place(g, q4, x):
    """Returns (slot, event, big event) of a far timer in bucket q4 of the top level, as
    wheel_put_far() does. x is the horizon. This is for numbers only: the class Far proves, with
    bit vectors, what it rests on."""
    c = (q4 ^ x).bit_length() - 1
    turn = ((x >> max(c, 0) | 1) << max(c, 0)) - (g.radix[4] - 1)
    return (g.far + c, turn * g.w4, turn * g.w4)


def place(math, g, qe, qc, ticks):
    """Returns (slot, event, big event) of a timer, as wheel_place() does."""
    at = far_place(g, qe[4], horizon(g, qc[4]))
    for l in (4, 3, 2, 1, 0):
        here = (slot(math, g, l, qe, qc), event(g, l, qe), big_event(g, l, qe, ticks))
        at = [either(fits(g, l, qe, qc), a, b) for a, b in zip(here, at)]
    return at


def stop_slot(math, g, l, k, qc):
    """Returns the slot of stop k of level l, as wheel_put_stop1() and wheel_put_stop2() do."""
    here = g.stop_first[l] + (current_slot(math, g, l, qc) - g.first[l]) * g.parts[l]
    here = here + k - qc[l] * g.parts[l]
    end = g.stop_first[l] + g.stop_slots[l]
    return either(here >= end, here - g.stop_slots[l], here)


def chosen(g, qe, qc):
    """Returns [slot, event] of a timer, as wheel_add_chosen() does. This is for numbers only."""
    for l in (1, 2):
        at_stop = not qe[0] % g.stop[l]
        if qe[0] > reach(g, l - 1, qc) and qe[0] <= reach(g, l, qc) and at_stop:
            return [stop_slot(Numbers, g, l, qe[0] // g.stop[l], qc), qe[0]]
    return list(place(Numbers, g, qe, qc, 1)[:2])


# The same, in the words of the head of wheel.h.

def reaches(g, l, qe, qc):
    """Does level l reach from clk to E? This is how the head of wheel.h says it."""
    if l < 4:
        return qe[l + 1] - qc[l + 1] <= g.reach
    return qe[4] - qc[4] < g.radix[4]


def home(math, g, l, q):
    """Returns the slot with the number q mod slots among the slots of level l."""
    return g.first[l] + q - g.slots[l] * math.div(q, g.slots[l])


# TAP

class Tap:
    nr = failed = 0

    def point(self, good, name, why=""):
        self.nr += 1
        self.failed += not good
        print(f"{'' if good else 'not '}ok {self.nr} - {name}", flush=True)
        if not good and why:
            print(f"# {why}")


# The claims

class Prover:
    """Proves claims about a timer due at E, for each clk up to E, and each later clk up to E."""

    def __init__(self, tap, name, g):
        self.tap, self.name, self.g = tap, name, g
        self.t = Terms()
        self.e, self.clk, self.later = (self.t.new(0, END) for _ in range(3))
        self.t.known += [self.clk <= self.later, self.later <= self.e]
        self.qc = quotients(self.t, g, self.clk)
        self.ql = quotients(self.t, g, self.later, self.qc)
        self.qe = quotients(self.t, g, self.e, self.ql)

    def level(self, l, qc=None):
        """Returns the condition that a timer due at E goes to level l. 5 stands for far. qc: the
        quotients of another clk"""
        qc = qc or self.qc
        below = [Not(reaches(self.g, k, self.qe, qc)) for k in range(l)]
        return And(below + ([reaches(self.g, l, self.qe, qc)] if l < 5 else []))

    def solve(self, *what):
        s = Solver()
        s.set("timeout", 60000)
        s.add(self.t.known)
        s.add(*what)
        return s.check(), s

    def counterexample(self, given, claim):
        """Returns clk, the later clk and E for which the claim fails, as a text, or "" if there are
        none. If z3 does not know, the text says so."""
        answer, s = self.solve(given, Not(claim))
        if answer == unsat:
            return ""
        if answer != sat:
            return f"z3 does not know: {s.reason_unknown()}"
        m = s.model()
        return ", ".join(f"{n} {m.eval(x)}" for n, x in
                         (("clk", self.clk), ("later", self.later), ("E", self.e)))

    def prove(self, name, given, claim):
        why = self.counterexample(given, claim)
        self.tap.point(not why, f"{self.name}: {name}", why)

    def refute(self, name, given, claim):
        """The claim must have a counterexample: a claim that cannot fail says nothing."""
        why = self.counterexample(given, claim)
        self.tap.point(why.startswith("clk"), f"{self.name}: not so {name}: {why}")

    def model(self, *what):
        """Returns a list of one pair (clk, E) with clk < E that meets the conditions, or of none.
        The code is tried with these pairs."""
        answer, s = self.solve(self.clk < self.e, *what)
        if answer != sat:
            return []
        m = s.model()
        return [(m.eval(self.clk).as_long(), m.eval(self.e).as_long())]


def distance(p, l, q):
    return p.qe[l] - q[l]


def one_q_each(p):
    """Returns for each level the claim that the slot of q_l(E) stands for no other q_l: any other
    that is at least q_l(clk), and less than all slots ahead of it, has another slot."""
    other = quotients(p.t, p.g, p.t.new(0, END))
    n = p.g.slots
    return [Or(other[l] == p.qe[l], other[l] - p.qc[l] < 0, other[l] - p.qc[l] >= n[l],
               home(p.t, p.g, l, other[l]) != home(p.t, p.g, l, p.qe[l])) for l in range(5)]


def prove_slots(p, l):
    """Prove that ahead() returns the slot of bucket q + d. The claim is about two numbers only: it
    gets constraints of its own, because z3 finds it hard beside all the others."""
    alone = Prover(p.tap, p.name, p.g)
    alone.t = Terms()
    first, n = p.g.first[l], p.g.slots[l]
    q, d = alone.t.new(0, END), alone.t.new(0, n)
    s = ahead(p.g, l, home(alone.t, p.g, l, q), d)
    alone.prove(f"level {l}: the slot of q is q mod slots, and the level's", True,
                And(s == first + q + d - n * alone.t.div(q + d, n, alone.t.div(q, n)),
                    s >= first, s < first + n))


def prove_level(p, l, other_slot):
    g, here = p.g, p.level(l)
    n, w, d = g.slots[l], g.width[l], distance(p, l, p.qc)
    big = big_event(g, l, p.qe, p.t.new(1, 2 ** 32))

    if l < 3:
        p.prove(f"level {l}: E <= reach says what q_l says, and reach does not wrap", True,
                And(fits(g, l, p.qe, p.qc) == reaches(g, l, p.qe, p.qc),
                    reach(g, l, p.qc) < END, reach(g, l, p.qc) >= p.clk))
    p.prove(f"level {l}: q_l is E / width_l", here,
            And(p.qe[l] * w <= p.e, p.e < p.qe[l] * w + w))
    p.prove(f"level {l}: clk's slot is q_l mod slots", True,
            current_slot(p.t, g, l, p.qc) == home(p.t, g, l, p.qc[l]))
    prove_slots(p, l)
    p.prove(f"level {l}: 0 <= q_l(E) - q_l(clk) < slots, until E", here,
            And(d >= 0, d < n, distance(p, l, p.ql) >= 0, distance(p, l, p.ql) < n))
    p.prove(f"level {l}: no other q_l has the slot", here, other_slot[l])
    if l:
        p.prove(f"level {l}: two buckets away at least: none comes to one being emptied",
                here, d >= 2)
    p.prove(f"level {l}: offset fits, and nothing wraps", here,
            And(offset(g, l, p.qe) >= 0, offset(g, l, p.qe) < w, p.qe[l] >= p.qc[l],
                Or(p.e == p.clk, big >= 0)))
    p.prove(f"level {l}: the events are after clk and not after E",
            And(here, p.clk < p.e),
            And(event(g, l, p.qe) > p.clk, event(g, l, p.qe) <= p.e,
                big > p.clk, big <= p.e))
    if l:
        p.prove(f"level {l}: draining a bucket starts when clk is in the one before it",
                And(here, p.clk < p.e), And(big < p.qe[l] * w, big >= p.qe[l] * w - w))


def prove_clock(p):
    """Prove what wheel_set_clk() does without a division, if clk stays in its bucket of level 1."""
    g, near = p.g, p.later <= reach(p.g, 0, p.qc) - p.g.width[1]
    p.prove("clk goes on by as many slots as ticks, up to a bucket before the reach of level 0", near,
            And(p.ql[1] == p.qc[1], current_slot(p.t, g, 0, p.ql) ==
                current_slot(p.t, g, 0, p.qc) + p.later - p.clk))
    p.refute("the same for a tick more", p.later <= reach(g, 0, p.qc) - g.width[1] + 1,
             p.ql[1] == p.qc[1])


def prove_stops(tap, name, g, l):
    """Prove the claims about a timer that is due at stop k of level l. n is any other stop, no
    earlier than the last stop at or before the later clk."""
    p = Prover(tap, name, g)
    k, n = p.t.new(0, END), p.t.new(0, END)
    first, slots, width = g.stop_first[l], g.stop_slots[l], g.stop[l]
    now = p.t.div(p.later, width)
    here = And(p.level(l), p.e == k * width)
    cur = stop_slot(p.t, g, l, now, p.ql)

    p.prove(f"stops of level {l}: its slot is k mod slots, and one of the level's stops", here,
            And(stop_slot(p.t, g, l, k, p.qc) == first + k - slots * p.t.div(k, slots),
                stop_slot(p.t, g, l, k, p.qc) >= first,
                stop_slot(p.t, g, l, k, p.qc) < first + slots))
    p.prove(f"stops of level {l}: until it has come it is less than all slots ahead", here,
            And(k - now >= 0, k - now < slots))
    p.prove(f"stops of level {l}: until then it is after clk", And(here, p.later < p.e), k > now)
    p.prove(f"stops of level {l}: in its tick the last stop's slot is its own", And(here, p.later == p.e),
            And(k == now, cur == first + k - slots * p.t.div(k, slots)))
    p.prove(f"stops of level {l}: no other that near has its slot",
            And(here, n >= now, n < now + slots, n != k),
            n - slots * p.t.div(n, slots) != k - slots * p.t.div(k, slots))
    p.refute(f"stops of level {l}: with a stop fewer", here, k - now < slots - g.parts[l] - 1)


def prove_moves(p, l):
    """Prove what happens to a timer of level l, an upper level, until it is moved at the later clk."""
    g, here, w = p.g, p.level(l), p.g.width[l]
    d = distance(p, l, p.ql)
    low = p.t.new(0, w)         # the bucket's min, in ticks from the bucket's start
    wake = p.qe[l] * w + low

    p.prove(f"level {l}: moved when its bucket is the current or the next, it falls",
            And(here, d <= 1), Not(And([Not(reaches(g, k, p.qe, p.ql)) for k in range(l)])))
    for k in range(1, l):
        p.prove(f"level {l}: and from there not into one of level {k} that is being emptied",
                And(d <= 1, p.level(k, p.ql)), distance(p, k, p.ql) >= 2)
    p.prove(f"level {l}: the bucket's event is in the bucket, and not after E",
            And(here, low <= offset(g, l, p.qe)),
            And(wake <= p.e, p.t.div(wake, w) == p.qe[l]))
    p.prove(f"level {l}: one in a bucket further on has a later event",
            here, (p.qe[l] - 1) * w + (w - 1) < wake)


def prove_expiry(p):
    g = p.g
    p.prove("a timer of the current slot of level 0 is due",
            And(p.level(0), home(p.t, g, 0, p.qe[0]) == current_slot(p.t, g, 0, p.ql)),
            p.later == p.e)
    p.prove("a timer that is moved in its tick goes to the current slot of level 0",
            p.later == p.e, And(p.level(0, p.ql),
                                slot(p.t, g, 0, p.qe, p.ql) == current_slot(p.t, g, 0, p.ql)))


def highest(x):
    """Returns a bit vector with only the highest bit that is set in x; 0 if x is 0."""
    for shift in (1, 2, 4, 8, 16, 32):
        x = x | LShR(x, shift)
    return x ^ LShR(x, 1)


class Far:
    """Proves claims about a far timer in bucket q of the top level, with bit vectors. x is the
    horizon, and later is a later horizon."""

    def __init__(self, tap, name, g):
        self.tap, self.name, self.g = tap, name, g
        self.q, self.x, self.later = (BitVec(n, 64) for n in ("q", "x", "later"))
        self.top = highest(self.q ^ self.x)
        self.turn = self.from_of(self.x, self.top)
        # The horizon is at least R4 - 1. The last q is the bucket of the last tick.
        self.known = [ULT(self.x, self.q), ULE(self.q, BitVecVal((END - 1) // g.w4, 64)),
                      ULE(g.radix[4] - 1, self.x), ULE(self.x, self.later)]

    @staticmethod
    def from_of(x, top):
        """Returns wheel_far_from() of the class of bit @top, without a shift by a variable."""
        return (x | top) & ~(top - 1)

    def answer(self, given, claim):
        s = Solver()
        s.set("timeout", 60000)
        s.add(self.known)
        s.add(given, Not(claim))
        return s

    def prove(self, name, given, claim):
        s = self.answer(given, claim)
        found = s.check()
        self.tap.point(found == unsat, f"{self.name}: far: {name}",
                       str(s.model()) if found == sat else str(found))

    def refute(self, name, given, claim):
        s = self.answer(given, claim)
        found = s.check()
        self.tap.point(found == sat, f"{self.name}: not so far: {name}: {' '.join(str(s.model()).split())}"
                       if found == sat else f"{self.name}: not so far: {name}", str(found))


def prove_far(tap, name, g):
    f = Far(tap, name, g)
    q, x, later, top, turn = f.q, f.x, f.later, f.top, f.turn
    other, c = BitVec("other", 64), BitVec("c", 64)
    other_top = highest(other ^ x)
    now = later == turn

    f.prove("its bit is 1 in q and 0 in x, and one of the classes'", True,
            And(top != 0, q & top != 0, x & top == 0, ULT(top - 1, 1 << (g.nr_slots - g.far - 1))))
    f.prove("wheel_far_from() of the class is that of its bit", And(ULT(c, 64), top == 1 << c),
            turn == (LShR(x, c) | 1) << c)
    f.prove("its turn is later than now, and q no earlier", True, And(ULT(x, turn), ULE(turn, q)))
    f.prove("until its turn it is of the same class, which has the same turn", ULT(later, turn),
            And(highest(q ^ later) == top, f.from_of(later, top) == turn))
    f.prove("a lower class has its turn earlier", And(ULT(x, other), ULT(other_top, top)),
            ULT(f.from_of(x, other_top), turn))
    f.prove("at its turn the lowest bit of x is its own: no other class has that", now,
            later & -later == top)
    f.prove("then what is added or moved, whatever it is due, is of another class",
            And(now, ULT(later, other)), highest(other ^ later) != top)
    f.prove("and moved it is within reach or of a lower class", now,
            Or(q == later, ULT(highest(q ^ later), top)))
    f.prove("from then on it is moved once for each bit of how far it is ahead, at most",
            And(now, q != later), ULE(highest(q ^ later), q - x))
    # At the turn of the class, clk enters this bucket of the top level. All timers of the class are
    # moved before the next bucket begins.
    clk = turn - (g.radix[4] - 1)
    f.prove("its turn is over before it is due, and no tick wraps", True,
            And(ULE(clk + 1, q), ULT(x - (g.radix[4] - 1), clk),
                ULE(q, (END - 1) // g.w4)))
    f.refute("with the turn a bucket late, it is of the same class until then", ULE(later, turn),
             highest(q ^ later) == top)


def more(n, than):
    """Returns by how much n is more than @than; 0 if it is not."""
    return If(n > than, n - than, 0)


def prove_pace(tap, name, g, l):
    """Prove the claims about the bucket of level l that begins next. It has n timers, and @left
    ticks are left for draining it. Level 5 stands for a class of far timers.

    @rate is the pace that the head of wheel.h states: WHEEL_BIG moves a tick, or evenly over all
    ticks. A product of two variables is a variable of its own. z3 is told about such products: if
    neither factor is negative, the product is not negative.
    """
    w = g.w4 if l == 5 else g.width[l] - 1
    small = 0 if l == 5 else g.big
    where = "far" if l == 5 else f"level {l}"
    p = Prover(tap, name, g)
    p.t = Terms()
    p.e, p.clk, p.later = n, left, rate = (p.t.new(1, 2 ** 32), p.t.new(1, w + 1),
                                           p.t.new(g.big, 2 ** 32))
    evenly = p.t.new(0, 2 ** 32)
    rate_left, evenly_left = p.t.new(0, END), p.t.new(0, END)
    p.t.known += [Or(left != w, rate_left == rate * w),
                  # The products (rate - big) left and (rate - big) (left - 1)
                  rate_left - g.big * left >= 0, rate_left - g.big * left - rate + g.big >= 0,
                  # If rate >= evenly, (rate - evenly) (left - 1); else (evenly - 1 - rate) left
                  If(rate >= evenly, rate_left - evenly_left - rate + evenly,
                     evenly_left - left - rate_left) >= 0,
                  # evenly is a quotient that wheel_owed() and wheel_begin_far() round up.
                  evenly_left >= more(n, small), evenly_left - left < more(n, small)]
    ahead = p.t.div(n - 1, g.big)
    if l == 5:
        owed, begins = If(evenly > g.big, evenly, g.big), left == w
    else:
        owed = If(Or(n <= g.big, left > If(ahead < w, ahead, w)), 0, evenly)
        begins = And(n > g.big, left == If(ahead < w, ahead, w))
    keeps = more(n, small) <= rate_left
    p.prove(f"{where}: when draining starts, the rate is enough for the ticks left",
            And(begins, rate * w >= more(n, small)), keeps)
    p.prove(f"{where}: then no tick owes more than the rate", keeps, owed <= rate)
    p.refute(f"{where}: a tick owes less than the rate", keeps, owed < rate)
    p.prove(f"{where}: and after it the rate is enough for the others", keeps,
            more(n - owed, small) <= rate_left - rate)


def prove_worst(tap, name, g):
    """Prove the bounds of all moves in a tick that the head of wheel.h states, for the geometry of
    a clock."""
    p = Prover(tap, name, g)
    p.t = Terms()
    n = [p.t.new(0, 2 ** 32) for _ in range(6)]
    ticks = [0] + [w - 1 for w in g.width[1:]] + [g.w4]
    small = [0] + [g.big] * 4 + [0]
    rate = [g.big + more(p.t.div(more(n[l], small[l]) + ticks[l] - 1, ticks[l]), g.big)
            for l in range(1, 6)]
    p.e, p.clk, p.later = n[1], n[2], n[3]
    paced, chunk = 4 * g.big + sum(rate), 8 * g.big + 8 * g.big
    # If no group owes more than WHEEL_BIG, wheel_begin_chunk() lets one of them move 8 WHEEL_BIG.
    moves = If(paced > chunk, paced, chunk)
    p.prove("all levels and far: 9 WHEEL_BIG where no bucket has more than that for each tick",
            And([n[l] <= g.big * ticks[l] for l in range(1, 6)]), paced == 9 * g.big)
    p.prove("and with a chunk 16 WHEEL_BIG, 512",
            And([n[l] <= g.big * ticks[l] for l in range(1, 6)]), moves == 512)
    sparse = And([n[l] <= g.big * ticks[l] for l in (3, 4, 5)])
    limit = And(sparse, n[2] <= 900000)
    p.prove("all levels and far: 512 and 1/59 of the next minute, with 900 000 in an hour", limit,
            59 * (moves - 512) <= n[1])
    p.refute("all levels and far: the same with a million in an hour", And(sparse, n[2] <= 1000000),
             59 * (moves - 512) <= n[1])


def prove_numbers(tap, name, g):
    """Check the facts about the constants that do not depend on E and clk."""
    widths, w = [], 1
    for radix in g.radix:
        widths.append(w)
        w *= radix
    ends = [f + n for f, n in zip(g.first, g.slots)]
    most, wide = 2 ** 32 - 1, max(g.width)
    tap.point(list(g.width) == widths, f"{name}: a width is the product of the radices below")
    stops = [f + n for f, n in zip(g.stop_first[1:], g.stop_slots[1:])]
    tap.point([1] + stops + ends == list(g.stop_first[1:]) + list(g.first) + [g.far] and
              g.far < g.nr_slots < 2 ** 15,
              f"{name}: the slots of stops and levels are side by side, and fit 15 bits")
    tap.point(g.width[2] % g.stop[2] == 0 and g.stop[2] % g.width[1] == 0 == g.stop[1] - g.width[1],
              f"{name}: a bucket begins at a stop, and each stop is a bucket of level 1")
    tap.point(most * wide + wide < END and g.big * wide < END and wide < 2 ** 32,
              f"{name}: products of counts and ticks in a bucket fit 64 bits")


def prove(tap, name, g):
    p = Prover(tap, name, g)
    other = one_q_each(p)
    prove_numbers(tap, name, g)
    p.prove("each timer has a level", True, Or([p.level(l) for l in range(6)]))
    for l in range(5):
        prove_level(p, l, other)
    prove_clock(p)
    for l in (1, 2):
        prove_stops(tap, name, g, l)
    for l in range(1, 5):
        prove_moves(p, l)
    prove_expiry(p)
    prove_far(tap, name, g)
    for l in range(1, 6):
        prove_pace(tap, name, g, l)
    if g.radix[0] == 60:
        prove_worst(tap, name, g)
    return samples(p)


def prove_limits(tap, name, g):
    """Show that claims fail with one bucket more of reach, with one less, which is what one
    rotation of slots allows, and with a single bucket in the top level."""
    g.reach = 2
    p = Prover(tap, name, g)
    for l in range(4):
        p.refute(f"with a reach of 2 buckets: level {l}: q_l(E) - q_l(clk) < slots",
                 p.level(l), distance(p, l, p.qc) < g.slots[l])
    g.reach = 0
    p = Prover(tap, name, g)
    for l in range(1, 5):
        p.refute(f"with a reach of 0: level {l}: what is moved a bucket ahead falls",
                 And(p.level(l), distance(p, l, p.ql) <= 1),
                 Not(And([Not(reaches(g, k, p.qe, p.ql)) for k in range(l)])))
    g.reach = 1
    g.radix = g.radix[:4] + (1,)
    f = Far(tap, name, g)
    f.refute("with 1 bucket in the top level: its turn is over before it is due", True,
             ULE(f.turn - (g.radix[4] - 1) + 1, f.q))


# Compare the formula with the code.

def samples(p):
    """Check that a timer can go to each level. Returns pairs (clk, E) that z3 finds for each level:
    at both ends of its reach, with E at the start of a bucket, with clk in the second half of all
    ticks, and with clk at the end of a bucket of the top level."""
    found = []
    for l in range(6):
        p.tap.point(p.model(p.level(l)), f"{p.name}: a timer can go to level {l}")
        reach = p.qe[min(l, 4) + (l < 4)] - p.qc[min(l, 4) + (l < 4)]
        for more in (reach == 0, reach == 1, reach == 2, reach == p.g.radix[4] - 1,
                     reach == p.g.radix[4], p.e == p.qe[min(l, 4)] * p.g.width[min(l, 4)],
                     p.clk > END // 2, p.clk == p.qc[4] * p.g.w4 + p.g.w4 - 1):
            found += p.model(p.level(l), more)
    return found


def random_samples(g):
    """Returns random pairs (clk, E). clk is of every magnitude; E is beside a boundary of any
    level, at a stop, or anywhere."""
    rnd = random.Random(SEED)
    pairs = []
    for _ in range(RANDOM):
        clk = rnd.randrange(END >> rnd.randrange(64))
        unit = rnd.choice(g.width + (g.w4 * g.radix[4],))
        e = clk + rnd.randrange(1, 4 * unit + 2)
        if rnd.random() < 0.5:
            e = e // unit * unit + rnd.randrange(3) - 1
        elif rnd.random() < 0.5:
            e -= e % rnd.choice(g.stop[1:])
        if clk < e < END - 1:
            pairs.append((clk, e))
    return pairs


def by_formula(g, clk, e, ticks):
    qc, qe = quotients(Numbers, g, clk), quotients(Numbers, g, e)
    now = [current_slot(Numbers, g, l, qc) for l in range(5)]
    return now + list(place(Numbers, g, qe, qc, ticks)) + [e] + chosen(g, qe, qc) + [e]


def cross_check(tap, name, g, probe, pairs):
    """Check that the probe prints what the formula computes, for each pair (clk, E). Each pair gets
    a bucket of another, random size."""
    rnd = random.Random(SEED)
    cases = [(clk, e, rnd.randrange(1, (2 ** 32 // g.big) >> rnd.randrange(24)))
             for clk, e in pairs]
    given = "".join(f"{clk} {e} {ticks}\n" for clk, e, ticks in cases)
    said = subprocess.run([probe], input=given, capture_output=True, text=True, check=True)
    lines = said.stdout.splitlines()[HEAD:]
    wrong = [(case, line) for case, line in zip(cases, lines)
             if by_formula(g, *case) != [int(x) for x in line.split()]]
    why = ""
    if wrong:
        case, line = wrong[0]
        why = f"{len(wrong)} differ: {case}: {by_formula(g, *case)}, the code: {line}"
    tap.point(not wrong and len(lines) == len(cases),
              f"{name}: the code does as the formula says, {len(cases)} times", why)


def main():
    tap = Tap()
    for probe in sys.argv[1:]:
        name = probe.rsplit("/", 1)[-1].removeprefix("probe-")
        said = subprocess.run([probe], input="", capture_output=True, text=True, check=True)
        g = Geometry(said.stdout.splitlines())
        pairs = prove(tap, name, g)
        cross_check(tap, name, g, probe, [p for p in pairs if p[1] < END - 1])
        cross_check(tap, name, g, probe, random_samples(g))
        prove_limits(tap, name, g)
    print(f"1..{tap.nr}")
    return tap.failed != 0


sys.exit(main())
