/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of rogue share, see rogue.c. */
#ifndef DAFL_TESTS_E2E_ROGUE_H
#define DAFL_TESTS_E2E_ROGUE_H

#include "agents/link.h"
#include "agents/runfile.h"
#include "protocol/envelope.h"

extern runfile *run;
extern uint64_t chance; /* the state of draw */

/* Say so and exit; or only if there is an error. */
_Noreturn void quit(const char *format, ...);
void need(dafl_err err, const char *what, const dafl_why *why);

uint64_t draw(uint64_t below);
uint64_t now_ms(void);
bool told_to_stop(void);
link_caps wide_caps(void);
uint16_t number_of(const dafl_secret_identity *id);
void load(dafl_secret_identity *id, const char *path);

/* The relay of this name, if there is one: LISTEN CONNECT SERVER.key CLIENT.key
 * OTHER.key. */
void relay(const char *name, char **arg);

#endif
