/* SPDX-License-Identifier: Apache-2.0 */
/* The check that is left out; only linked with machines that can. */
#include "protocol/weaken.h"

dafl_weak dafl_weakened;
