/* SPDX-License-Identifier: Apache-2.0 */
/* One slot against a malicious server, for spin: docs/protocol.md, what
 * protocol/rules.c lets a client do, and nothing else of it.
 *
 * The server is not a process: it is the choice of what happens next. Whatever
 * message a client would take, it may get, at any time, whoever else got what:
 * another cohort A than the others, other survivors U3, signatures as soon as
 * they exist. What a client sends the server has at once; only client 0 is
 * slow: its upload comes later, after whatever else, or it has kept its answer
 * back. Who colludes (the last C clients) signs everything, END included, with
 * one of two digests, and gives all its shares. Any client may crash: it
 * remembers what it journaled, which is its upload and its statement, and
 * forgets a cohort it has answered with neither.
 *
 * Cryptography is perfect: a signature is there when its owner gave it, and a
 * secret when TS holders other than its dealer have given a share of it. Keys
 * of other slots are others, so one slot is all there is to look at. Policy,
 * keys and numbers are no part of this; lab/test_walk.c has them, by chance
 * instead of exhaustively. Of the setup there is one thing: a server that shows
 * two lists of members, each client one of them as it likes (A_LIST, B_LIST).
 * Clients with another list have another h_setup, so they do not agree on
 * statements; but they hold shares of each other. (Then all on a list are
 * cast: what comes of other cohorts is seen with one list.)
 *
 *   N, C     clients, of whom C collude; T = floor((n - 1 + C) / 2) + 1, n the
 *            length of the client's list
 *   CELL     members of the first cell, the others are the second; 0: no cells
 *   A_LIST, B_LIST, A_N, B_N  two lists and their lengths; none: all clients
 *   MUTANT   leaves one rule out, see below
 *   BARE     asserts only what shares alone must give: never both secrets
 *   REACH    asserts that no sum opens although client 0 is gone: false
 *   REACH2   asserts that clients with only one of two lists reveal: false
 *
 * What is asserted, of honest clients, after every step:
 *   ONE      all shares that clients with one list ever gave are for one
 *            statement
 *   BOTH     never both secrets of a client
 *   OPEN     whose self mask can be taken off is a survivor of that statement,
 *            has uploaded, and in the cohort that the statement names
 *   PAIR     of such survivors the pair key is not there, whoever gave shares */
#ifndef N
#define N 6
#endif
#ifndef C
#define C 1
#endif
#ifndef CELL
#define CELL 3
#endif

/* The rules that can be missing. */
#define NOTHING 0
#define SECOND 1 /* signs a second statement */
#define SHORT 2  /* a quorum of t - 1 besides its own signature */
#define EARLY 3  /* reveals when it signs, before CONF */
#define TWOFOLD 4 /* reveals both shares of every dealer that was cast */
#define APART 5  /* does not ask whether survivors signed END for this A */
#define GHOST 6  /* .. nor whether they, or it, uploaded at all */
#define FEWER 7  /* reveals before CONF, and t - 1 shares make a secret */
#define LESS 8   /* t - 1 shares make a secret */
#ifndef MUTANT
#define MUTANT NOTHING
#endif

#ifdef A_LIST
#define LIST(u) list[u]
#define LENGTH(u) (list[u] == A_LIST -> A_N : B_N)
#else
#define LIST(u) ALL
#define LENGTH(u) N
#endif
#define T(u) ((LENGTH(u) - 1 + C) / 2 + 1)
#if MUTANT == FEWER || MUTANT == LESS
#define TS(u) (T(u) - 1)
#else
#define TS(u) T(u)
#endif
#if MUTANT == SHORT
#define QUORUM(u) (T(u) - 1)
#else
#define QUORUM(u) T(u)
#endif
#if MUTANT == SECOND
#define STATEMENTS 2
#else
#define STATEMENTS 1
#endif

#define HONEST (N - C)
#define ALL ((1 << N) - 1)
#define HAS(set, u) (((set) >> (u)) & 1)
#define WITHIN(x, y) (((x) & ~(y)) == 0)
#define FIRST_CELL ((1 << CELL) - 1)

/* Client u: the cohort it was cast in (0: not yet), whether it is done with its
 * answer (kept back: no), whether the server has its upload. */
byte cast[HONEST];
#ifdef A_LIST
byte list[HONEST];
#endif
bool sent[HONEST], here[HONEST];
/* Its statements: A, U3 and the colluders' digests; and whether it has revealed
 * on it. */
byte st_a[HONEST * STATEMENTS], st_u3[HONEST * STATEMENTS];
bool st_dig[HONEST * STATEMENTS], st_out[HONEST * STATEMENTS];

/* Any set of whole cells, or without cells any that lacks one client at most. */
inline any_cohort(set)
{
#if CELL
    if
    :: set = FIRST_CELL
    :: set = ALL & ~FIRST_CELL
    :: set = ALL
    fi
#else
    do
    :: i < N -> i++
    :: break
    od;
    set = LIST(me) & ~(1 << i);
    i = 0
#endif
}

/* Whether this client signs for the survivors u3 of its cohort: `ok`. */
inline rule_surv(u3)
{
    ok = WITHIN(u3, cast[me]);
#if MUTANT != GHOST
    if
    :: HAS(u3, me) && !sent[me] -> ok = false
    :: else
    fi;
    for (i : 0 .. HONEST - 1) {
        if
#if MUTANT == APART
        :: i != me && HAS(u3, i) && !here[i] -> ok = false
#else
        :: i != me && HAS(u3, i) &&
           !(here[i] && cast[i] == cast[me] && LIST(i) == LIST(me)) ->
            ok = false
#endif
        :: else
        fi
    }
    i = 0
#endif
}

/* Signatures on the client's statement number k besides its own: n. */
inline count_signers(k)
{
    n = C;
    for (i : 0 .. HONEST * STATEMENTS - 1) {
        if
        :: i / STATEMENTS != me && st_a[i] != 0 && st_a[i] == st_a[k] &&
           st_u3[i] == st_u3[k] && st_dig[i] == st_dig[k] &&
           LIST(i / STATEMENTS) == LIST(me) -> n++
        :: else
        fi
    }
    i = 0
}

#define SAME_LIST(k, u) (LIST((k) / STATEMENTS) == LIST(u))

inline check()
{
    byte one, u, k, b, sk;
    bool opens, both = false;

    for (u : 0 .. HONEST - 1) {
        one = 255; /* a statement on which somebody with u's list revealed */
        b = C;
        sk = C;
        for (k : 0 .. HONEST * STATEMENTS - 1) {
            if
            :: st_out[k] && SAME_LIST(k, u) && one == 255 -> one = k
            :: st_out[k] && SAME_LIST(k, u) && one != 255 ->
#ifndef BARE
                assert(st_a[k] == st_a[one] && st_u3[k] == st_u3[one] &&
                       st_dig[k] == st_dig[one]) /* ONE */
#endif
            :: st_out[k] && !SAME_LIST(k, u) -> both = true
            :: else
            fi;
            if
            :: st_out[k] && k / STATEMENTS != u && HAS(st_a[k], u) &&
               HAS(LIST(u), k / STATEMENTS) ->
#if MUTANT == TWOFOLD
                b++;
                sk++
#else
                if
                :: HAS(st_u3[k], u) -> b++
                :: else -> sk++
                fi
#endif
            :: else
            fi
        }
#ifndef BARE
        if
        :: one != 255 && HAS(st_u3[one], u) ->
            assert(!(sk >= TS(u) && here[u])) /* PAIR */
        :: else
        fi;
#endif
        assert(!(b >= TS(u) && sk >= TS(u))); /* BOTH */
#ifndef BARE
        if
        :: b >= TS(u) ->
            assert(one != 255);
            assert(HAS(st_u3[one], u) && here[u] && cast[u] == st_a[one]) /* OPEN */
        :: else
        fi;
#endif
#ifdef REACH
        opens = (u == 0 -> one != 255 : opens);
        if
        :: one != 255 && HAS(st_u3[one], u) && b < TS(u) -> opens = false
        :: one != 255 && HAS(st_a[one], u) && !HAS(st_u3[one], u) &&
           sk < TS(u) -> opens = false
        :: else
        fi;
        assert(!(u == HONEST - 1 && opens && HAS(st_a[one], 0) &&
                 !HAS(st_u3[one], 0)));
#endif
#ifdef REACH2
        assert(!(both && one != 255));
#endif
        one = 0;
        b = 0;
        sk = 0
    }
    u = 0;
    k = 0;
    opens = false;
    both = false
}

active [HONEST] proctype client()
{
    byte me = _pid;
    byte set, i, n;
    bool ok;

    do
#ifdef A_LIST
    :: atomic { /* PEERS */
        list[me] == 0 ->
        if
        :: HAS(A_LIST, me) -> list[me] = A_LIST
        :: HAS(B_LIST, me) -> list[me] = B_LIST
        fi
    }
#endif
    :: atomic { /* CAST */
        cast[me] == 0 && LIST(me) != 0 ->
#ifdef A_LIST
        set = LIST(me);
#else
        any_cohort(set);
#endif
        cast[me] = set;
        if
        :: !HAS(set, me)
        :: HAS(set, me) -> sent[me] = true; here[me] = me != 0
        :: HAS(set, me) && me == 0 /* keeps its answer back */
        fi;
        set = 0
    }
    :: atomic { /* a crash: nothing of this is in its journal */
        cast[me] != 0 && !sent[me] && st_a[me * STATEMENTS] == 0 ->
        cast[me] = 0
    }
    :: atomic { /* the slow one's upload is here at last */
        sent[me] && !here[me] ->
        here[me] = true;
        d_step { check() }
    }
    :: atomic { /* SURV, SIGN */
        cast[me] != 0 && st_a[me * STATEMENTS + STATEMENTS - 1] == 0 ->
        any_cohort(set);
        d_step { rule_surv(set) };
        if
        :: !ok
        :: ok ->
            n = me * STATEMENTS;
#if MUTANT == SECOND
            if
            :: st_a[n] != 0 -> n++
            :: else
            fi;
#endif
            st_a[n] = cast[me];
            st_u3[n] = set;
#if C
            if
            :: st_dig[n] = false
            :: (set >> HONEST) != 0 -> st_dig[n] = true
            fi;
#endif
#if MUTANT == EARLY || MUTANT == FEWER
            st_out[n] = true;
            d_step { check() };
#endif
            skip
        fi;
        set = 0;
        n = 0;
        ok = false
    }
    :: atomic { /* CONF, REVEAL: on the last statement it signed */
        st_a[me * STATEMENTS] != 0 ->
        set = me * STATEMENTS;
#if MUTANT == SECOND
        if
        :: st_a[set + 1] != 0 -> set++
        :: else
        fi;
#endif
        if
        :: st_out[set]
        :: !st_out[set] ->
            d_step { count_signers(set) };
            if
            :: n >= QUORUM(me) ->
                st_out[set] = true;
                d_step { check() }
            :: else
            fi
        fi;
        set = 0;
        n = 0
    }
    od
}
