#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
"""
place.py PROBE: where wheel.h puts a timer, proved for all 0 <= clk <= E < 2^64.

The formula is that of wheel_place(), wheel_put() and wheel_set_clk(), written once and
used twice: with terms of z3 for E and clk, to prove, and with numbers, to see that it
is what the code does. Its constants are those that PROBE, a program around wheel.h,
prints. z3 shows each claim by finding no counterexample.

First that it is what the head of wheel.h says: the lowest level with q_{l+1}(E) -
q_{l+1}(clk) <= 1, and slot q_l(E) mod slots. Then what follows from that.

Divisions by constants are what z3 is bad at in 64-bit vectors. In integers, x / k is a
new q with k q <= x < k q + k, and all is linear. Integers do not wrap around, so that
the code's do not is among the claims.

What is claimed is what the invariants of the wheel rest on:

  - each timer has one level, and a slot of it that stands for no other q_l, now and
    until it is due; so none is handed out in a tick that is not its own (never early)
  - a timer that is moved from a bucket that begins next, or has begun, falls by a level
    at least, past every bucket that is being emptied (at most four moves)
  - each bucket's event is after clk and no later than any of its timers, and in time
    for them to be moved (never late)
  - what is far is not due before the look through the far list is over

Each claim that a constant of the design makes true is tried with the constant next to
it, and must fail there.
"""
import random
import subprocess
import sys

from z3 import And, If, Int, Not, Or, Solver, sat, unsat

END = 2 ** 64
SEED = 1
RANDOM = 20000


class Geometry:
    def __init__(self, lines):
        rows = [[int(x) for x in line.split()] for line in lines[:6]]
        self.radix, self.first, self.slots, self.width = zip(*rows[:5])
        self.far, self.nr_slots, self.big, self.w4 = rows[5]
        self.reach = 1


class Terms:
    """Numbers that z3 does not know yet, and what is known of them."""

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
        """@near, of an x no later, is where to look from: z3 gets on with small numbers."""
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


# The formula: wheel.h in other words.

def quotients(math, g, x, near=(0,) * 6):
    """x / width_l for each level, and x / span, by one division after the other."""
    q = [x]
    for radix, n in zip(g.radix, near[1:]):
        q.append(math.div(q[-1], radix, n))
    return q


def current_slot(math, g, l, q):
    """wheel_slot(), and the top level's slot: that of clk."""
    if l == 4:
        return g.first[4] + q[4] - q[5] * g.radix[4]
    odd = q[l + 1] - 2 * math.div(q[l + 1], 2)
    return g.first[l] + odd * g.radix[l] + q[l] - q[l + 1] * g.radix[l]


def last(g, q, width):
    """wheel_last()"""
    return either(q < (END - 1) // width, (q + 1) * width - 1, END - 1)


def reach(g, l, qc):
    """wheel->reach, of levels 0 to 2"""
    return last(g, qc[l + 1] + g.reach, g.width[l + 1])


def fits(g, l, qe, qc):
    """wheel_place(): does level l reach from clk to E?"""
    return qe[0] <= reach(g, l, qc) if l < 3 else reaches(g, l, qe, qc)


def ahead(g, l, here, d):
    """wheel_put_level(): the slot @d buckets after slot @here"""
    return either(here + d >= g.first[l] + g.slots[l], here + d - g.slots[l], here + d)


def slot(math, g, l, qe, qc):
    return ahead(g, l, current_slot(math, g, l, qc), qe[l] - qc[l])


def offset(g, l, qe):
    """Ticks from the bucket's start; the bucket's event is there if this is its min."""
    return qe[0] - qe[l] * g.width[l]


def event(g, l, qe):
    """What wheel_put() and wheel_put_far() return for a timer alone."""
    return qe[0] if l < 5 else (qe[4] - (g.radix[4] - 1)) * g.w4


def big_event(g, l, qe, ticks):
    """And for one whose bucket needs so many to be made small: within the bucket before."""
    if l in (0, 5):
        return event(g, l, qe)
    return qe[0] - offset(g, l, qe) - either(ticks < g.width[l], ticks, g.width[l] - 1)


def place(math, g, qe, qc, ticks):
    """wheel_place(): (slot, event, big event)"""
    at = (g.far, event(g, 5, qe), big_event(g, 5, qe, ticks))
    for l in (4, 3, 2, 1, 0):
        here = (slot(math, g, l, qe, qc), event(g, l, qe), big_event(g, l, qe, ticks))
        at = [either(fits(g, l, qe, qc), a, b) for a, b in zip(here, at)]
    return at


# And by the book.

def reaches(g, l, qe, qc):
    """Does level l reach from clk to E?"""
    if l < 4:
        return qe[l + 1] - qc[l + 1] <= g.reach
    return qe[4] - qc[4] < g.radix[4]


def home(math, g, l, q):
    """q mod slots, in the level's slots"""
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
    """E and a clk no later, and a later clk still no later than E."""

    def __init__(self, tap, name, g):
        self.tap, self.name, self.g = tap, name, g
        self.t = Terms()
        self.e, self.clk, self.later = (self.t.new(0, END) for _ in range(3))
        self.t.known += [self.clk <= self.later, self.later <= self.e]
        self.qc = quotients(self.t, g, self.clk)
        self.ql = quotients(self.t, g, self.later, self.qc)
        self.qe = quotients(self.t, g, self.e, self.ql)

    def level(self, l, qc=None):
        """E goes to level l; 5 is far."""
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
        """(clk, E) or "" if there is none"""
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
        """It must not hold: a claim that cannot fail says nothing."""
        why = self.counterexample(given, claim)
        self.tap.point(why.startswith("clk"), f"{self.name}: not so {name}: {why}")

    def model(self, *what):
        """(clk, E) for which it is so, for the code to be tried with."""
        answer, s = self.solve(self.clk < self.e, *what)
        if answer != sat:
            return []
        m = s.model()
        return [(m.eval(self.clk).as_long(), m.eval(self.e).as_long())]


def distance(p, l, q):
    return p.qe[l] - q[l]


def one_q_each(p):
    """A slot is taken by its q_l alone: any other that is as near has another slot."""
    other = quotients(p.t, p.g, p.t.new(0, END))
    n = p.g.slots
    return [Or(other[l] == p.qe[l], other[l] - p.qc[l] < 0, other[l] - p.qc[l] >= n[l],
               home(p.t, p.g, l, other[l]) != home(p.t, p.g, l, p.qe[l])) for l in range(5)]


def prove_slots(p, l):
    """A fact of two bucket numbers alone, which z3 finds hard beside all the others."""
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
        p.prove(f"level {l}: a bucket is begun with when clk is in the one before it",
                And(here, p.clk < p.e), And(big < p.qe[l] * w, big >= p.qe[l] * w - w))


def prove_moves(p, l):
    """What happens to a timer of an upper level until it is moved, at tick later."""
    g, here, w = p.g, p.level(l), p.g.width[l]
    d = distance(p, l, p.ql)
    low = p.t.new(0, w)         # the bucket's min
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


def prove_far(p):
    """later is when the look through the list begins, no later than its first event."""
    g, here, end = p.g, p.level(5), (p.ql[4] + 1) * p.g.w4

    p.prove("far: its event is after clk, not after E, and does not wrap", here,
            And(event(g, 5, p.qe) > p.clk, event(g, 5, p.qe) <= p.e, p.qe[4] >= g.radix[4]))
    p.prove("far: at its event the top level reaches", And(here, p.later == event(g, 5, p.qe)),
            reaches(g, 4, p.qe, p.ql))
    p.prove("far: a look that begins by its event is over before it is due",
            And(here, p.later <= event(g, 5, p.qe)), And(end < p.e, end < END))
    p.prove("far: one added during a look has its event when that is over, or later",
            And(here, p.later == p.clk), event(g, 5, p.qe) >= end)


def prove_numbers(tap, name, g):
    """What is no matter of E and clk."""
    widths, w = [], 1
    for radix in g.radix:
        widths.append(w)
        w *= radix
    ends = [f + n for f, n in zip(g.first, g.slots)]
    most, wide = 2 ** 32 - 1, max(g.width)
    tap.point(list(g.width) == widths, f"{name}: a width is the product of the radices below")
    tap.point([1] + ends == list(g.first) + [g.far] and g.nr_slots == g.far + 2 < 2 ** 16,
              f"{name}: the levels' slots are side by side, and fit 16 bits")
    tap.point(most * wide + wide < END and g.big * wide < END and wide < 2 ** 32,
              f"{name}: products of counts and ticks in a bucket fit 64 bits")


def prove(tap, name, g):
    p = Prover(tap, name, g)
    other = one_q_each(p)
    prove_numbers(tap, name, g)
    p.prove("each timer has a level", True, Or([p.level(l) for l in range(6)]))
    for l in range(5):
        prove_level(p, l, other)
    for l in range(1, 5):
        prove_moves(p, l)
    prove_expiry(p)
    prove_far(p)
    return samples(p)


def prove_limits(tap, name, g):
    """With one bucket more of reach, or one rotation of slots less, it is not so."""
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
    g.radix = g.radix[:4] + (2,)
    p = Prover(tap, name, g)
    p.refute("with 2 buckets in the top level: a look is over before its timers are due",
             And(p.level(5), p.later <= event(g, 5, p.qe)), (p.ql[4] + 1) * g.w4 < p.e)


# The formula against the code

def samples(p):
    """What z3 finds for each level, at both ends of it, early, late and anywhere."""
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
    """Of every magnitude, and beside every boundary."""
    rnd = random.Random(SEED)
    pairs = []
    for _ in range(RANDOM):
        clk = rnd.randrange(END >> rnd.randrange(64))
        unit = rnd.choice(g.width + (g.w4 * g.radix[4],))
        e = clk + rnd.randrange(1, 4 * unit + 2)
        if rnd.random() < 0.5:
            e = e // unit * unit + rnd.randrange(3) - 1
        if clk < e < END - 1:
            pairs.append((clk, e))
    return pairs


def by_formula(g, clk, e, ticks):
    qc, qe = quotients(Numbers, g, clk), quotients(Numbers, g, e)
    now = [current_slot(Numbers, g, l, qc) for l in range(5)]
    return now + list(place(Numbers, g, qe, qc, ticks)) + [e]


def cross_check(tap, name, g, probe, pairs):
    """Each with a bucket of another size."""
    rnd = random.Random(SEED)
    cases = [(clk, e, rnd.randrange(1, (2 ** 32 // g.big) >> rnd.randrange(24)))
             for clk, e in pairs]
    given = "".join(f"{clk} {e} {ticks}\n" for clk, e, ticks in cases)
    said = subprocess.run([probe], input=given, capture_output=True, text=True, check=True)
    lines = said.stdout.splitlines()[6:]
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
