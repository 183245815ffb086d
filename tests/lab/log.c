/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder: what a machine tells becomes a line of its party's audit log,
 * and the machine is told the new head. */
#include "tests/lab/inside.h"

static void tell_head(const lab_party *p)
{
    if (p->client != NULL)
        dafl_client_log(p->client, &p->audit.head);
    else if (p->holder != NULL)
        dafl_holder_log(p->holder, &p->audit.head);
    else
        dafl_server_log(p->server, &p->audit.head);
}

void lab_log_open(lab *l, lab_party *p)
{
    dafl_why why = {{0}};
    size_t keep = 0;

    if (!l->scenario.audit)
        return;
    dafl_audit_init(&p->audit, &p->id, p->index, l->scenario.k);
    if (dafl_audit_resume(&p->audit, &keep, dafl_writer_bytes(&p->log), &why) !=
        DAFL_OK)
        lab_die("party %u: %s", (unsigned)p->index, why.text);
    p->log.len = keep;
    tell_head(p);
}

void lab_log_event(lab *l, lab_party *p, const dafl_effect *effect)
{
    if (!l->scenario.audit)
        return;
    if (dafl_audit_add(&p->audit, &p->log, &effect->event, effect->bytes,
                       l->now) != DAFL_OK)
        lab_broken(l, "party %u tells of %s what cannot be logged",
                   (unsigned)p->index, dafl_event_name(effect->event.kind));
    else
        tell_head(p);
}

dafl_bytes lab_log(const lab *l, uint16_t party)
{
    return dafl_writer_bytes(&lab_party_of(l, party)->log);
}

void lab_log_put(lab *l, uint16_t party, dafl_bytes log)
{
    lab_party *p = lab_party_of(l, party);

    dafl_writer_clear(&p->log);
    dafl_put_fixed(&p->log, log.ptr, log.len);
    if (dafl_writer_done(&p->log) != DAFL_OK)
        lab_die("no memory");
}
