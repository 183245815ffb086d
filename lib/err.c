/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/err.h"

#include <stdarg.h>
#include <stdio.h>

const char *dafl_err_name(dafl_err err)
{
    switch (err) {
    case DAFL_OK:
        return "ok";
    case DAFL_ERR_ARG:
        return "wrong use of the library";
    case DAFL_ERR_INPUT:
        return "invalid input";
    case DAFL_ERR_PEER:
        return "invalid message";
    case DAFL_ERR_CRYPTO:
        return "authentication failed";
    case DAFL_ERR_NUMERIC:
        return "no finite solution";
    case DAFL_ERR_NOMEM:
        return "out of memory";
    case DAFL_ERR_SYS:
        return "system error";
    }
    return "unknown error";
}

void dafl_why_set(dafl_why *why, const char *format, ...)
{
    va_list args;

    if (why == NULL)
        return;
    va_start(args, format);
    (void)vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    for (char *c = why->text; *c != '\0'; c++) {
        unsigned char now = (unsigned char)c[0], next = (unsigned char)c[1];
        if (now < 0x20 || now == 0x7f)
            *c = '?';
        else if (now == 0xc2 && (next & 0xe0) == 0x80) /* U+0080 to U+009F */
            c[0] = c[1] = '?';
    }
}
