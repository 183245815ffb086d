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
 * setup and numbers are no part of this; lab/test_walk.c has them, by chance
 * instead of exhaustively.
 *
 *   N, C     clients, of whom C collude; T = floor((N - 1 + C) / 2) + 1
 *   M        smallest cohort
 *   CELL     members of the first cell, the others are the second; 0: no cells
 *   MUTANT   leaves one rule out, see below
 *   BARE     asserts only what shares alone must give: never both secrets
 *   REACH    asserts that no sum opens although client 0 is gone: false
 *
 * What is asserted, of honest clients, after every step:
 *   ONE      all shares that were ever given are for one statement
 *   BOTH     never both secrets of a client
 *   OPEN     whose self mask can be taken off is a survivor of that statement,
 *            has uploaded, and in the cohort that the statement names */
#ifndef N
#define N 6
#endif
#ifndef C
#define C 1
#endif
#ifndef M
#define M 3
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
#ifndef MUTANT
#define MUTANT NOTHING
#endif

#define T ((N - 1 + C) / 2 + 1)
#if MUTANT == FEWER
#define TS (T - 1)
#else
#define TS T
#endif
#if MUTANT == SHORT
#define QUORUM (T - 1)
#else
#define QUORUM T
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
bool sent[HONEST], here[HONEST];
/* Its statements: A, U3 and the colluders' digests; and whether it has revealed
 * on it. */
byte st_a[HONEST * STATEMENTS], st_u3[HONEST * STATEMENTS];
bool st_dig[HONEST * STATEMENTS], st_out[HONEST * STATEMENTS];

/* Any set of whole cells, or of clients; 0 when it has fewer than M members.
 * The colluders' bits come with the rest. */
inline any_cohort(set)
{
    set = 0;
    n = 0;
#if CELL
    if
    :: set = FIRST_CELL; n = CELL
    :: set = ALL & ~FIRST_CELL; n = N - CELL
    :: set = ALL; n = N
    fi;
#else
    for (i : 0 .. N - 1) {
        if
        :: set = set | (1 << i); n++
        :: skip
        fi
    }
#endif
    if
    :: n < M -> set = 0
    :: else
    fi;
    i = 0;
    n = 0
}

/* Whether this client signs for the survivors u3 of its cohort: `ok`. */
inline rule_surv(u3)
{
    ok = u3 != 0 && WITHIN(u3, cast[me]);
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
        :: i != me && HAS(u3, i) && !(here[i] && cast[i] == cast[me]) ->
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
           st_u3[i] == st_u3[k] && st_dig[i] == st_dig[k] -> n++
        :: else
        fi
    }
    i = 0
}

inline check()
{
    byte one = 255; /* a statement on which somebody has revealed */
    byte u, k, b, sk;
    bool opens;

    for (k : 0 .. HONEST * STATEMENTS - 1) {
        if
        :: st_out[k] && one == 255 -> one = k
        :: st_out[k] && one != 255 ->
#ifndef BARE
            assert(st_a[k] == st_a[one] && st_u3[k] == st_u3[one] &&
                   st_dig[k] == st_dig[one]) /* ONE */
#endif
        :: else
        fi
    }
    opens = one != 255;
    for (u : 0 .. HONEST - 1) {
        b = C;
        sk = C;
        for (k : 0 .. HONEST * STATEMENTS - 1) {
            if
            :: st_out[k] && k / STATEMENTS != u && HAS(st_a[k], u) ->
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
        assert(!(b >= TS && sk >= TS)); /* BOTH */
#ifndef BARE
        if
        :: b >= TS ->
            assert(one != 255);
            assert(HAS(st_u3[one], u) && here[u] && cast[u] == st_a[one]) /* OPEN */
        :: else
        fi;
#endif
        if
        :: one != 255 && HAS(st_u3[one], u) && b < TS -> opens = false
        :: one != 255 && HAS(st_a[one], u) && !HAS(st_u3[one], u) && sk < TS ->
            opens = false
        :: else
        fi
    }
#ifdef REACH
    assert(!(opens && HAS(st_a[one], 0) && !HAS(st_u3[one], 0)));
#endif
    one = 0;
    u = 0;
    k = 0;
    b = 0;
    sk = 0;
    opens = false
}

active [HONEST] proctype client()
{
    byte me = _pid;
    byte set, i, n;
    bool ok;

    do
    :: atomic { /* CAST */
        cast[me] == 0 ->
        any_cohort(set);
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
            :: n >= QUORUM ->
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
