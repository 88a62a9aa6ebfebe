"""The oracles of outputs that should cover groups (`groups`).

**Costs of what is not covered.** With potentials b_g of groups, which are not negative, the highest score is bounded by
prices: for p_g in the simplex of the parts of group g,

    b_g [g is not covered] <= b_g (1 - sum_q p_gq [y has q]),

so that a call of the base bounds all outputs. Prices are raised where outputs have the parts of a group, as long as
bound and score differ by more than those of the base do. If that does not help and groups are few, each set of groups
that stay uncovered is tried: their parts are ruled out, which is exact where the base is. Sets that cannot win are left
out.

**All groups covered.** The best output of the base, with the node forced that loses least by covering a group, as long
as one is left uncovered: exact if the base is and its first output covers all, else with the bound of the base. Where
nodes forced for some groups are in the way of others, it is the output that the problem holds.
"""

from __future__ import annotations

from maxmargin import problem as generics
from maxmargin.arrays.vectors import clear, copy_into
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper, implements
from maxmargin.structures.derived.groups import (
    MOST_GROUPS,
    CoveredProblem,
    CoverProblem,
    count_groups,
    count_states,
    find_bound,
    is_covered,
    part_of_state,
    parts_of_base,
)
from maxmargin.structures.graphs.fractional import max_of_bounded

MOST_ROUNDS = 8  # of prices
NOTHING = -1
HUGE = 1e35  # beyond all scores, be they in single precision


@implements(generics.oracle_work, CoverProblem, CoveredProblem)
def cover_work(problem):
    return MOST_ROUNDS * generics.oracle_work(problem.base)


cover_work.asks_base = True  # type: ignore[attr-defined]  # so that `supports` does, too


implements(generics.max_oracle, CoverProblem, CoveredProblem)(max_of_bounded)


@implements(generics.bound_oracle, CoverProblem)
def bound_covers(problem, i, theta, y, work):
    groups = problem.groups
    if count_groups(problem, i) == 0:
        return find_bound(problem.base, i, theta, y, work.base)
    parts = parts_of_base(problem, i, theta)
    reward = theta[parts.size :]
    price = work.price[: groups.first[groups.starts[i + 1]] - groups.first[groups.starts[i]]]
    clear(price)
    total = 0.0
    for g in range(reward.size):
        total += max(reward[g], 0.0)
    candidate = work.y[: y.size]
    bound = HUGE
    best = -HUGE
    for move in range(MOST_ROUNDS):
        charge(groups, i, parts, reward, price, work.theta)
        highest = find_bound(problem.base, i, work.theta[: parts.size], candidate, work.base)
        bound = min(bound, total + highest)
        best = keep_better(problem, i, theta, candidate, y, best)
        if move == 0:
            work.bounds[0] = highest
        charged = generics.score_output(problem.base, i, work.theta[: parts.size], candidate)
        if generics.is_tight(total + charged, generics.score_output(problem, i, theta, candidate)):
            return max(bound, best)  # prices cannot do better: what is left open is so by the base
        raise_prices(groups, i, candidate, 1 / (move + 1), price)
    if reward.size <= MOST_GROUPS:
        return max(best, min(bound, try_subsets(problem, i, theta, y, best, work)))
    copy_into(work.theta, parts)
    for g in range(reward.size):
        if not is_covered(groups, groups.starts[i] + g, y):
            rule_out(groups, groups.starts[i] + g, work.theta)
    find_bound(problem.base, i, work.theta[: parts.size], candidate, work.base)
    return max(bound, keep_better(problem, i, theta, candidate, y, best))


@helper
def keep_better(problem, i, theta, candidate, y, best):
    """Copy a candidate into `y` if it scores higher than `best`; return the higher score."""
    score = generics.score_output(problem, i, theta, candidate)
    if score > best:
        copy_into(y, candidate)
        return score
    return best


@helper
def charge(groups, i, parts, reward, price, out):
    """Write the potentials of the base, less the prices of the parts of groups."""
    copy_into(out, parts)
    lo = groups.first[groups.starts[i]]
    for g in range(reward.size):
        if reward[g] > 0:
            at = groups.starts[i] + g
            for m in range(groups.first[at], groups.first[at + 1]):
                out[groups.part[m]] -= reward[g] * price[m - lo]


@helper
def raise_prices(groups, i, y, step, price):
    """Move the prices of the groups that an output covers towards the parts that it has."""
    lo = groups.first[groups.starts[i]]
    for g in range(groups.starts[i], groups.starts[i + 1]):
        count = 0
        for m in range(groups.first[g], groups.first[g + 1]):
            count += y[groups.node[m]] == groups.state[m]
        if count > 0:
            for m in range(groups.first[g], groups.first[g + 1]):
                has_part = y[groups.node[m]] == groups.state[m]
                price[m - lo] += step * (has_part / count - price[m - lo])


@helper
def rule_out(groups, g, theta):
    """Make the parts of group g impossible."""
    for m in range(groups.first[g], groups.first[g + 1]):
        theta[groups.part[m]] = IMPOSSIBLE


@helper
def try_subsets(problem, i, theta, y, best, work):
    """Replace `y` by the best output for any set of groups that stay uncovered; return a bound of all scores.

    Sets are numbers whose bits are groups. A set has no higher bound than those with one group less.
    """
    groups = problem.groups
    parts = parts_of_base(problem, i, theta)
    reward = theta[parts.size :]
    candidate = work.y[: y.size]
    bounds = work.bounds
    bound = bounds[0]
    for subset in range(1, 1 << reward.size):
        copy_into(work.theta, parts)
        gain = 0.0
        bounds[subset] = bounds[0]
        for g in range(reward.size):
            if subset >> g & 1:
                gain += reward[g]
                bounds[subset] = min(bounds[subset], bounds[subset ^ 1 << g])
                rule_out(groups, groups.starts[i] + g, work.theta)
        if bounds[subset] + gain > best:
            highest = find_bound(problem.base, i, work.theta[: parts.size], candidate, work.base)
            bounds[subset] = min(bounds[subset], highest)
            best = keep_better(problem, i, theta, candidate, y, best)
            bound = max(bound, bounds[subset] + gain)
    return max(bound, best)


@implements(generics.bound_oracle, CoveredProblem)
def bound_covered(problem, i, theta, y, work):
    groups = problem.groups
    parts = parts_of_base(problem, i, theta)
    copy_into(work.theta, parts)
    is_forced = work.is_forced[: y.size]
    clear(is_forced)
    bound = find_bound(problem.base, i, work.theta[: parts.size], y, work.base)
    for _ in range(count_groups(problem, i)):
        m = find_cheapest(problem, i, parts, y, is_forced)
        if m == NOTHING:
            break
        force(problem.base, i, groups.node[m], groups.state[m], work.theta)
        is_forced[groups.node[m]] = 1
        find_bound(problem.base, i, work.theta[: parts.size], y, work.base)
        for p in range(y.size):  # an oracle that is not exact may have missed it
            if is_forced[p]:
                keep_forced(problem.base, i, p, work.theta, y)
    best = generics.score_output(problem, i, theta, y)
    outputs = problem.outputs
    return max(
        bound, keep_better(problem, i, theta, outputs.values[outputs.starts[i] : outputs.starts[i + 1]], y, best)
    )


@helper
def find_cheapest(problem, i, theta, y, is_forced):
    """Of the first group that is not covered, the part of a free node that loses least, given the other nodes.

    NOTHING if there is none.
    """
    groups = problem.groups
    for g in range(groups.starts[i], groups.starts[i + 1]):
        if not is_covered(groups, g, y):
            cheapest = NOTHING
            best = IMPOSSIBLE / 2
            for m in range(groups.first[g], groups.first[g + 1]):
                node = groups.node[m]
                if not is_forced[node]:
                    before = y[node]
                    y[node] = groups.state[m]
                    score = generics.score_output(problem.base, i, theta, y)
                    y[node] = before
                    if score > best:
                        best = score
                        cheapest = m
            if cheapest != NOTHING:
                return cheapest
    return NOTHING


@helper
def force(base, i, node, state, theta):
    """Make the other states of a node impossible."""
    for other in range(count_states(base, i, node)):
        if other != state:
            theta[part_of_state(base, i, node, other)] = IMPOSSIBLE


@helper
def keep_forced(base, i, node, theta, y):
    """Give a forced node the state that is left."""
    for state in range(count_states(base, i, node)):
        if theta[part_of_state(base, i, node, state)] > IMPOSSIBLE / 2:
            y[node] = state
