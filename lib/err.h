/* SPDX-License-Identifier: Apache-2.0 */
/* One return type for everything that can fail, and the sentence that goes
 * with it. The code says whose fault it was and so what to do next; the
 * sentence is for the person who has to do it. */
#ifndef DAFL_LIB_ERR_H
#define DAFL_LIB_ERR_H

#define DAFL_CHECK __attribute__((warn_unused_result))

typedef enum {
    DAFL_OK = 0,
    DAFL_ERR_ARG,     /* our caller's mistake: fix the program */
    DAFL_ERR_INPUT,   /* a file, option or value the user gave: correct it */
    DAFL_ERR_PEER,    /* malformed or out of turn: drop the peer */
    DAFL_ERR_CRYPTO,  /* a tag or signature did not hold: drop and report */
    DAFL_ERR_NUMERIC, /* singular or not finite: this round has no answer */
    DAFL_ERR_NOMEM,
    DAFL_ERR_SYS, /* operating system or transport */
} dafl_err;

/* The reason for an error, one line without a full stop or newline. Functions
 * that judge something a user gave take one; NULL is accepted everywhere. */
typedef struct {
    char text[512];
} dafl_why;

/* "invalid input", "out of memory", ..: never NULL. */
const char *dafl_err_name(dafl_err err);

/* Write the reason. Control characters become '?', so a name taken from a
 * hostile file cannot write to the terminal. */
void dafl_why_set(dafl_why *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Write the reason and give back `err`: `return dafl_fail(why, DAFL_ERR_INPUT,
 * "%s: not a .npy file", path)`. A macro, so that the reader of a call (the
 * static analyser too) sees that the result is that error. */
#define dafl_fail(why, err, ...) (dafl_why_set((why), __VA_ARGS__), (err))

/* Return early with an error; for functions that own nothing. */
#define DAFL_TRY(expr)              \
    do {                            \
        dafl_err try_err_ = (expr); \
        if (try_err_ != DAFL_OK)    \
            return try_err_;        \
    } while (0)

#endif
