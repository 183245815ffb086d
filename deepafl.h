/* SPDX-License-Identifier: Apache-2.0 */
/* libdeepafl: everything a program needs to take part in, run or use the
 * result of deep analytic federated learning. */
#ifndef DEEPAFL_H
#define DEEPAFL_H

#include "lib/data.h"
#include "lib/err.h"
#include "lib/model.h"
#include "lib/pool.h"
#include "lib/query.h"
#include "lib/set.h"
#include "lib/site.h"
#include "lib/sum.h"
#include "lib/trainer.h"
#include "lib/version.h"
#include "protocol/audit_check.h"
#include "protocol/client.h"
#include "protocol/deep.h"
#include "protocol/envelope.h"
#include "protocol/holder.h"
#include "protocol/server.h"

#endif
