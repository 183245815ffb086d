/* SPDX-License-Identifier: Apache-2.0 */
/* For methods whose segments say nothing and whose objects keep nothing. */
#ifndef DAFL_TESTS_LAB_SILENT_H
#define DAFL_TESTS_LAB_SILENT_H

#include "tests/check.h"

#include "tests/lab/lab.h"

CHECK_HELPER dafl_fault follow_nothing(void *self, const dafl_segment *segment)
{
    (void)self;
    (void)segment;
    return DAFL_FAULT_NONE;
}

CHECK_HELPER dafl_fault rewind_nothing(void *self)
{
    (void)self;
    return DAFL_FAULT_NONE;
}

CHECK_HELPER dafl_fault segment_of_nothing(void *self, uint32_t number,
                                           dafl_segment *out,
                                           dafl_writer *bytes)
{
    (void)self;
    (void)number;
    (void)out;
    dafl_put_u8(bytes, 0);
    return DAFL_FAULT_NONE;
}

CHECK_HELPER void free_nothing(void *self)
{
    (void)self;
}

#endif
