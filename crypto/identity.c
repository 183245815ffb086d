/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "lib/file.h"

#define MAGIC "deepafl-key-1"
/* A key file: "deepafl-key-1\n", the public line "\n", "seed " 128 hex "\n",
 * "check " 64 hex "\n" with the digest of all before it. With room for one byte
 * more, so that a longer file is seen, and a zero. */
#define FILE_MAX \
    (sizeof MAGIC + DAFL_IDENTITY_LINE_MAX + 5 + 128 + 1 + 6 + 64 + 1 + 2)

bool dafl_name_ok(const char *name)
{
    size_t n = strlen(name);

    if (n == 0 || n > DAFL_NAME_MAX)
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789-_.") == n;
}

dafl_err dafl_identity_new_derand(dafl_secret_identity *out, const char *name,
                                  const uint8_t seed[64], dafl_why *why)
{
    if (!dafl_name_ok(name))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "name '%.80s': use 1 to %d letters, digits, '-', '_' "
                         "or '.'",
                         name, DAFL_NAME_MAX);
    memset(out, 0, sizeof *out);
    memcpy(out->public.name, name, strlen(name));
    (void)crypto_sign_ed25519_seed_keypair(out->public.sign_pk, out->sign_sk,
                                           seed);
    memcpy(out->curve_sk.b, seed + 32, sizeof out->curve_sk.b);
    dafl_key_public(&out->public.curve_pk, &out->curve_sk);
    return DAFL_OK;
}

dafl_err dafl_identity_new(dafl_secret_identity *out, const char *name,
                           dafl_why *why)
{
    uint8_t seed[64];
    dafl_err err;

    randombytes_buf(seed, sizeof seed);
    err = dafl_identity_new_derand(out, name, seed, why);
    sodium_memzero(seed, sizeof seed);
    return err;
}

void dafl_identity_wipe(dafl_secret_identity *id)
{
    sodium_memzero(id, sizeof *id);
}

void dafl_identity_format(char line[DAFL_IDENTITY_LINE_MAX],
                          const dafl_identity *id)
{
    char sign[65], curve[65];

    sodium_bin2hex(sign, sizeof sign, id->sign_pk, sizeof id->sign_pk);
    sodium_bin2hex(curve, sizeof curve, id->curve_pk.b, sizeof id->curve_pk.b);
    (void)snprintf(line, DAFL_IDENTITY_LINE_MAX, "%s ed25519:%s curve25519:%s",
                   id->name, sign, curve);
}

/* `n` bytes of lower-case hex at *text, which moves past them. */
static int take_hex(uint8_t *out, size_t n, const char **text)
{
    size_t len = 0;
    const char *end = NULL;

    if (strspn(*text, "0123456789abcdef") < 2 * n ||
        sodium_hex2bin(out, n, *text, 2 * n, NULL, &len, &end) != 0 || len != n)
        return 0;
    *text += 2 * n;
    return 1;
}

static int take_word(const char **text, const char *word)
{
    size_t n = strlen(word);

    if (strncmp(*text, word, n) != 0)
        return 0;
    *text += n;
    return 1;
}

dafl_err dafl_identity_parse(dafl_identity *out, const char *line,
                             dafl_why *why)
{
    dafl_identity id = {.name = ""};
    size_t n = strcspn(line, " ");
    const char *at = line + n;

    if (n > DAFL_NAME_MAX)
        return dafl_fail(why, DAFL_ERR_INPUT, "the name is too long");
    memcpy(id.name, line, n);
    if (!dafl_name_ok(id.name) || !take_word(&at, " ed25519:") ||
        !take_hex(id.sign_pk, sizeof id.sign_pk, &at) ||
        !take_word(&at, " curve25519:") ||
        !take_hex(id.curve_pk.b, sizeof id.curve_pk.b, &at) || *at != '\0')
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "'%.80s' is not 'NAME ed25519:HEX curve25519:HEX'",
                         line);
    *out = id;
    return DAFL_OK;
}

/* "check " and the digest of the text so far, in hex. */
static void check_line(char line[6 + 65], const char *text, size_t len)
{
    dafl_digest d;

    dafl_hash_one(&d, "deepafl/keyfile",
                  (dafl_bytes){(const uint8_t *)text, len});
    (void)snprintf(line, 7, "check ");
    sodium_bin2hex(line + 6, 65, d.b, sizeof d.b);
}

static size_t write_text(char text[FILE_MAX], const dafl_secret_identity *id)
{
    char line[DAFL_IDENTITY_LINE_MAX], hex[129], check[6 + 65];
    uint8_t seed[64];
    int len;

    (void)crypto_sign_ed25519_sk_to_seed(seed, id->sign_sk);
    memcpy(seed + 32, id->curve_sk.b, 32);
    sodium_bin2hex(hex, sizeof hex, seed, sizeof seed);
    dafl_identity_format(line, &id->public);
    len = snprintf(text, FILE_MAX, "%s\n%s\nseed %s\n", MAGIC, line, hex);
    check_line(check, text, (size_t)len);
    len += snprintf(text + len, FILE_MAX - (size_t)len, "%s\n", check);
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(hex, sizeof hex);
    return (size_t)len;
}

dafl_err dafl_identity_save(const dafl_secret_identity *id, const char *path,
                            dafl_why *why)
{
    char text[FILE_MAX];
    size_t len;
    dafl_err err = DAFL_OK;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 && errno == EEXIST)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: exists already and stays as it is; the second "
                         "line of a key file is the public one",
                         path);
    if (fd < 0)
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: cannot create: %s", path,
                         strerror(errno));
    len = write_text(text, id);
    errno = ENOSPC; /* what a short write means */
    if (write(fd, text, len) != (ssize_t)len || fsync(fd) != 0)
        err = dafl_fail(why, DAFL_ERR_SYS, "%s: cannot write: %s", path,
                        strerror(errno));
    if (close(fd) != 0 && err == DAFL_OK)
        err = dafl_fail(why, DAFL_ERR_SYS, "%s: cannot write: %s", path,
                        strerror(errno));
    if (err != DAFL_OK)
        (void)unlink(path);
    else
        dafl_file_sync_parent(path);
    sodium_memzero(text, sizeof text);
    return err;
}

/* The file's text, after its owner and mode have been judged. */
static dafl_err read_private(char text[FILE_MAX], const char *path,
                             dafl_why *why)
{
    dafl_err err = DAFL_OK;
    struct stat st;
    ssize_t len;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: cannot open: %s", path,
                         strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        err = dafl_fail(why, DAFL_ERR_INPUT, "%s: is not a regular file", path);
    else if ((st.st_mode & 077) != 0)
        err = dafl_fail(why, DAFL_ERR_INPUT,
                        "%s: others can read or write this secret key (mode "
                        "%03o); chmod 600 it, and make a new key if they may "
                        "have",
                        path, (unsigned)(st.st_mode & 0777));
    else if (st.st_uid != geteuid())
        err =
            dafl_fail(why, DAFL_ERR_INPUT, "%s: belongs to another user", path);
    if (err == DAFL_OK) {
        len = read(fd, text, FILE_MAX - 1);
        if (len < 0)
            err = dafl_fail(why, DAFL_ERR_INPUT, "%s: cannot read: %s", path,
                            strerror(errno));
        else /* a zero inside would hide what follows: take nothing */
            text[memchr(text, 0, (size_t)len) != NULL ? 0 : len] = '\0';
    }
    (void)close(fd);
    return err;
}

static int parse_file(dafl_secret_identity *out, const char *text)
{
    const char *start = text;
    dafl_identity claimed;
    char line[DAFL_IDENTITY_LINE_MAX], check[6 + 65];
    uint8_t seed[64];
    size_t n;
    int ok = 0;

    if (!take_word(&text, MAGIC "\n"))
        return 0;
    n = strcspn(text, "\n");
    if (n >= sizeof line)
        return 0;
    memcpy(line, text, n);
    line[n] = '\0';
    text += n;
    if (dafl_identity_parse(&claimed, line, NULL) == DAFL_OK &&
        take_word(&text, "\nseed ") && take_hex(seed, sizeof seed, &text) &&
        take_word(&text, "\n") &&
        dafl_identity_new_derand(out, claimed.name, seed, NULL) == DAFL_OK) {
        check_line(check, start, (size_t)(text - start));
        ok = take_word(&text, check) && strcmp(text, "\n") == 0 &&
             memcmp(&out->public, &claimed, sizeof claimed) == 0;
    }
    sodium_memzero(seed, sizeof seed);
    return ok;
}

dafl_err dafl_identity_load(dafl_secret_identity *out, const char *path,
                            dafl_why *why)
{
    char text[FILE_MAX];
    dafl_secret_identity id;
    dafl_err err = read_private(text, path, why);

    if (err == DAFL_OK) {
        if (parse_file(&id, text))
            *out = id;
        else
            err = dafl_fail(why, DAFL_ERR_INPUT,
                            "%s: is not a whole deepafl key file", path);
        dafl_identity_wipe(&id);
    }
    sodium_memzero(text, sizeof text);
    return err;
}

void dafl_sign(dafl_signature *out, const dafl_digest *digest,
               const dafl_secret_identity *id)
{
    (void)crypto_sign_ed25519_detached(out->b, NULL, digest->b,
                                       sizeof digest->b, id->sign_sk);
}

dafl_err dafl_sign_check(const dafl_signature *sig, const dafl_digest *digest,
                         const uint8_t sign_pk[32])
{
    return crypto_sign_ed25519_verify_detached(sig->b, digest->b,
                                               sizeof digest->b, sign_pk) == 0
               ? DAFL_OK
               : DAFL_ERR_CRYPTO;
}
