/* SPDX-License-Identifier: Apache-2.0 */
/* deepafl keygen: who a party is. */
#include <stdio.h>
#include <string.h>

#include "agents/cli.h"
#include "crypto/identity.h"

static dafl_err print_identity(const dafl_identity *id, const char *path,
                               bool json, dafl_why *why)
{
    char line[DAFL_IDENTITY_LINE_MAX];

    dafl_identity_format(line, id);
    if (!json) {
        printf("%s\n", line);
        return DAFL_OK;
    }
    return cli_printed(
        cli_print_json(json_pack("{s:s, s:s, s:s}", "name", id->name, "file",
                                 path, "public", line)),
        why);
}

static dafl_err keygen(const char *name, const char *out, bool json,
                       dafl_why *why)
{
    char path[DAFL_NAME_MAX + sizeof ".key"];
    dafl_secret_identity id;
    json_t *shown;
    dafl_err err;

    DAFL_TRY(dafl_identity_new(&id, name, why));
    if (out == NULL) {
        (void)snprintf(path, sizeof path, "%s.key", name);
        out = path;
    }
    shown = json_string(out);
    json_decref(shown);
    if (json && shown == NULL) {
        dafl_identity_wipe(&id);
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--out: --json can only show a path in UTF-8");
    }
    err = dafl_identity_save(&id, out, why);
    if (err == DAFL_OK)
        err = print_identity(&id.public, out, json, why);
    dafl_identity_wipe(&id);
    return err;
}

int cmd_keygen(int argc, char **argv)
{
    const char *name = NULL, *out = NULL;
    bool json = false;
    const opt opts[] = {
        {OPT_HEADING, NULL, NULL, NULL, "Options"},
        {OPT_TEXT, "out", "FILE", &out,
         "where to write the secret key (default NAME.key); never over\n"
         "an existing file"},
        {OPT_FLAG, "json", NULL, &json, "one JSON object on stdout"},
    };
    dafl_why why = {{0}};
    dafl_err err;
    int code = cli_parse(
        "keygen", "NAME [--out FILE]",
        "Make the keys of a party: a secret file that only you may read and "
        "that never\nleaves this machine, and on stdout the public line for "
        "the roster. Keep the line\nin a file of its own:\n\n  deepafl keygen "
        "site1 > site1.pub",
        opts, sizeof opts / sizeof opts[0], argc, argv, &name, 1);

    if (code >= 0)
        return code;
    err = keygen(name, out, json, &why);
    return err == DAFL_OK ? 0 : cli_fail("keygen", err, &why);
}
