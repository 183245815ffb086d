/* SPDX-License-Identifier: Apache-2.0 */
/* Every decoder of the protocol: the first byte chooses the message, 0 an
 * envelope, 254 a config, 255 a roster. What decodes must encode to the same
 * bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/config.h"
#include "protocol/envelope.h"
#include "protocol/roster.h"
#include "tests/protocol/recode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void envelope(dafl_bytes bytes)
{
    static const uint8_t nobody[32];
    dafl_envelope m;

    if (dafl_get_envelope(&m, bytes, 1 << 16) != DAFL_FAULT_NONE)
        return;
    if (m.body.len + DAFL_ENVELOPE_OVERHEAD != bytes.len ||
        dafl_envelope_check(&m, nobody) != DAFL_E_AUTH)
        abort();
}

static bool roster(dafl_bytes bytes, dafl_writer *w)
{
    dafl_roster r;

    if (dafl_get_roster(&r, bytes, NULL) != DAFL_OK)
        return false;
    dafl_put_roster(w, &r);
    return true;
}

static bool config(dafl_bytes bytes, dafl_writer *w)
{
    dafl_config c;
    dafl_digest d;

    if (dafl_get_config(&c, bytes, NULL) != DAFL_OK)
        return false;
    if (dafl_config_digest(&d, &c) != DAFL_OK)
        abort();
    dafl_put_config(w, &c);
    return true;
}

static bool decode(uint8_t what, dafl_bytes bytes, dafl_writer *w)
{
    switch (what) {
    case 254:
        return config(bytes, w);
    case 255:
        return roster(bytes, w);
    default:
        return recode(what, bytes, w);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dafl_writer w = {0};
    dafl_bytes body = {data + 1, size - 1};

    if (size == 0)
        return 0;
    if (data[0] == 0)
        envelope(body);
    else if (decode(data[0], body, &w) &&
             (w.len != body.len ||
              (w.len > 0 && memcmp(w.ptr, body.ptr, w.len) != 0)))
        abort();
    dafl_writer_drop(&w);
    return 0;
}
