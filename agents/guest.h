/* SPDX-License-Identifier: Apache-2.0 */
/* A party that connects to the server: a client or the key holder. What its
 * machine wants is carried out, what the server sends goes to the machine, and
 * after a silence it says HELLO again. */
#ifndef DAFL_AGENTS_GUEST_H
#define DAFL_AGENTS_GUEST_H

#include "agents/role.h"

/* As of protocol/client.h; every function gets `self`. */
typedef struct {
    void *self;
    dafl_err (*recall)(void *self, dafl_bytes record);
    dafl_err (*recall_kept)(void *self, uint32_t slot, dafl_bytes kept);
    dafl_err (*start)(void *self);
    dafl_err (*hello)(void *self);
    dafl_err (*receive)(void *self, dafl_bytes message);
    bool (*next)(void *self, dafl_effect *out);
    void (*log)(void *self, const dafl_digest *head);
    bool (*out)(const void *self);  /* of the run */
    bool (*over)(const void *self); /* by the journal its last run is */
    dafl_fault (*fault)(const void *self);
    const char *(*says)(const void *self);
} guest_machine;

/* `wrap`: the machine of type `type` as a guest_machine; its function that
 * takes what the vault has is type_##kept, its last state `last`. */
#define GUEST_MACHINE(wrap, type, kept, last)                                  \
    static dafl_err type##_recall_(void *self, dafl_bytes record)              \
    {                                                                          \
        return type##_recall(self, record);                                    \
    }                                                                          \
    static dafl_err type##_kept_(void *self, uint32_t slot, dafl_bytes bytes)  \
    {                                                                          \
        return type##_##kept(self, slot, bytes);                               \
    }                                                                          \
    static dafl_err type##_start_(void *self)                                  \
    {                                                                          \
        return type##_start(self);                                             \
    }                                                                          \
    static dafl_err type##_hello_(void *self)                                  \
    {                                                                          \
        return type##_hello(self);                                             \
    }                                                                          \
    static dafl_err type##_receive_(void *self, dafl_bytes message)            \
    {                                                                          \
        return type##_receive(self, message);                                  \
    }                                                                          \
    static bool type##_next_(void *self, dafl_effect *out)                     \
    {                                                                          \
        return type##_next(self, out);                                         \
    }                                                                          \
    static void type##_log_(void *self, const dafl_digest *head)               \
    {                                                                          \
        type##_log(self, head);                                                \
    }                                                                          \
    static bool type##_out_(const void *self)                                  \
    {                                                                          \
        return type##_where(self) == (last);                                   \
    }                                                                          \
    static bool type##_over_(const void *self)                                 \
    {                                                                          \
        return type##_over(self);                                              \
    }                                                                          \
    static dafl_fault type##_fault_(const void *self)                          \
    {                                                                          \
        return type##_fault(self);                                             \
    }                                                                          \
    static const char *type##_says_(const void *self)                          \
    {                                                                          \
        return type##_says(self);                                              \
    }                                                                          \
    static guest_machine wrap(void *self)                                      \
    {                                                                          \
        return (guest_machine){self,          type##_recall_, type##_kept_,    \
                               type##_start_, type##_hello_,  type##_receive_, \
                               type##_next_,  type##_log_,    type##_out_,     \
                               type##_over_,  type##_fault_,  type##_says_};   \
    }

/* Why a machine could not be made: its reason, by the name of the fault if
 * there is one. */
DAFL_CHECK dafl_err guest_refused(dafl_err err, dafl_fault fault,
                                  const dafl_why *reason, dafl_why *why);
/* The floors of the command line. */
dafl_floor guest_floor(const role_options *o);

/* Give a new machine what is on disk, connect, and take part until it is out
 * of the run or told to stop. */
DAFL_CHECK dafl_err guest_run(const guest_machine *m, desk *d,
                              const role_options *o, dafl_why *why);
/* How the run ended for it: say so and give the exit code. */
int guest_verdict(const guest_machine *m, desk *d);

#endif
