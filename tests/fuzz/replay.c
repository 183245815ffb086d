/* SPDX-License-Identifier: Apache-2.0 */
/* Run a fuzz target over the files, and the files of the directories, that are
 * named on the command line: the corpus as a plain test, with any compiler. */
#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool replay_file(const char *path)
{
    dafl_why why = {""};
    dafl_map map;
    uint8_t *copy = NULL;
    bool ok = false;

    if (dafl_map_open(&map, path, &why) != DAFL_OK) {
        (void)fprintf(stderr, "%s\n", why.text);
        return false;
    }
    /* A copy of exactly its length: a mapping ends with readable zeros, which
     * would hide a read beyond the end from a sanitizer. */
    copy = malloc(map.bytes.len > 0 ? map.bytes.len : 1);
    if (copy != NULL) {
        if (map.bytes.len > 0)
            memcpy(copy, map.bytes.ptr, map.bytes.len);
        ok = LLVMFuzzerTestOneInput(copy, map.bytes.len) == 0;
    }
    dafl_map_close(&map);
    free(copy);
    return ok;
}

/* How many inputs were replayed; false when one could not be read. */
static bool replay(size_t *n, const char *path)
{
    DIR *dir = opendir(path);
    bool ok = true;

    if (dir == NULL) { /* a file, or an error that opening it will tell */
        ok = replay_file(path);
        *n += ok;
        return ok;
    }
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        char child[4096];
        int len = snprintf(child, sizeof child, "%s/%s", path, e->d_name);

        if (e->d_name[0] == '.')
            continue;
        if (len < 0 || (size_t)len >= sizeof child || !replay_file(child))
            ok = false;
        else
            ++*n;
    }
    (void)closedir(dir);
    return ok;
}

int main(int argc, char **argv)
{
    size_t n = 0;
    bool ok = true;

    for (int i = 1; i < argc; i++)
        ok = replay(&n, argv[i]) && ok;
    (void)printf("%zu inputs replayed\n", n);
    return ok && n > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
