#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An audit log with a line of every event, written from the grammar at the head of protocol/audit.h and the list of
events in protocol/effect.h alone.

    python3 audit.py > audit.h"""
import json

from crypto import ed_sign, h, quoted, some

seed, run = some('identity', 64), some('run', 16)
d = {name: some(name).hex() for name in ('roster', 'config', 'hk', 'h_setup', 'model', 'ctx', 'ctx2', 'dig', 'stmt',
                                         'dig 10', 'dig 11', 'sum', 'head', 'he', 'sealed')}
sig = {name: some(name, 64).hex() for name in ('sig', 'sig 0', 'sig 11')}
PARTY, CLIENTS = 9, 12

# event, run, slot, ts, data
events = [
    ('start', bytes(16), 0, 0, {'boot': 1, 'config': d['config'], 'name': 'Site-9_a.b', 'roster': d['roster']}),
    ('invite', run, 0, 1, {'enrolment': 0, 'peer': 12}),
    ('enroll', run, 0, 2, {'enrolment': 0, 'hk': d['hk']}),
    ('setup', run, 0, 1700000000000, {'enrolment': 4294967294, 'h_setup': d['h_setup'], 'peer': 12, 't': 258,
                                      'u0': list(range(12)), 'u1': [0, 1, 2, 9, 10, 11]}),
    ('model', run, 9, 4, {'h_setup': d['h_setup'], 'he': d['he'], 'len': 627200, 'model': d['model'], 'peer': 12, 'question': 2,
                          'rank': 65537, 'w': 48}),
    ('model', run, 10, 4, {'chosen': [], 'h_setup': d['h_setup'], 'he': d['he'], 'len': 2**40 + 1, 'model': d['model'],
                           'question': 3, 'rank': 0, 'w': 255}),
    ('ready', run, 9, 5, {'ctx': d['ctx']}),
    ('cast', run, 9, 6, {'a': [0, 1, 2, 9, 10, 11], 'ctx2': d['ctx2'], 'peer': 12}),
    ('upload', run, 9, 7, {'dig': d['dig']}),
    ('surv', run, 9, 8, {'digests': [d['dig'], d['dig 10'], d['dig 11']], 'stmt': d['stmt'], 'u3': [9, 10, 11]}),
    ('sign', run, 9, 9, {'digests': [d['dig'], d['dig 10'], d['dig 11']], 'peer': 12, 'signature': sig['sig'],
                         'stmt': d['stmt'], 'u3': [9, 10, 11]}),
    ('conf', run, 9, 10, {'fault': 'E_QUORUM', 'peer': 12, 'signatures': [sig['sig 0'], sig['sig 11']],
                          'signers': [0, 11], 'stmt': d['stmt']}),
    ('reveal', run, 9, 11, {'gone': [0, 1, 2]}),
    ('result', run, 9, 12, {'fault': 'OK', 'peer': 12, 'sum': d['sum']}),
    ('result', run, 4294967295, 13, {'fault': 'E_SUM_INVALID', 'question': 2, 'sum': d['sum'], 'u3': [9, 10, 11]}),
    ('error', run, 7, 14, {'fault': 'W_ROW_DIFF'}),
    ('done', run, 9, 15, {'fault': 'OK'}),
    ('key', run, 9, 16, {'he': d['he'], 'peer': 12}),
    ('open', run, 9, 17, {'peer': 12, 'sealed': d['sealed'], 'u3': [9, 10, 11]}),
    ('errors', run, 9, 18, {'count': 4294967279, 'fault': 'E_REPLAY', 'peer': 3}),
    ('peer_head', run, 9, 2**63 - 1, {'boot': 4294967295, 'head': d['head'], 'message': 17, 'peer': 12}),
]

log, prev = [], bytes(32)
for seq, (event, of_run, slot, ts, data) in enumerate(events, 1):
    line = {'v': 1, 'seq': seq, 'ts': ts, 'party': PARTY, 'run': of_run.hex(), 'slot': slot, 'event': event,
            'data': data, 'prev': prev.hex()}
    text = lambda: json.dumps(line, sort_keys=True, separators=(',', ':'))
    prev = h('deepafl/audit', text().encode())
    line['hash'] = prev.hex()
    line['sig'] = ed_sign(seed[:32], prev).hex()
    log.append(text() + '\n')

print('/* SPDX-License-Identifier: Apache-2.0 */')
print('/* Written by audit.py; bytes in hexadecimal. */\n')
for name, value in ([('seed', seed), ('run', run)] +
                    [(k.replace(' ', '_'), bytes.fromhex(v)) for k, v in {**d, **sig}.items()]):
    print(f'static const char given_{name}[] =\n     {quoted(value)};')
print('\nstatic const char *const known_lines[] = {')
for line in log:
    print(f'     {quoted(line.encode())},')
print('};')
