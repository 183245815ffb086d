/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* chown, mkfifo */

#include <fcntl.h>
#include <stdbool.h>

#include "tests/crypto/bytes.h"
#include "crypto/identity.h"
#include "tests/vectors/crypto.h"

#define TEXT_MAX 1024

static dafl_secret_identity some_identity(const char *name)
{
    dafl_secret_identity id;
    uint8_t seed[64];

    random_bytes(seed, sizeof seed);
    assert_ok(dafl_identity_new_derand(&id, name, seed, NULL));
    return id;
}

static size_t read_all(char text[TEXT_MAX], const char *path)
{
    FILE *f = fopen(path, "r");
    size_t n;

    assert_non_null(f);
    n = fread(text, 1, TEXT_MAX, f);
    (void)fclose(f);
    return n;
}

/* A file of these bytes and mode 0600. */
static void write_all(const char *path, const char *text, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_true(write(fd, text, n) == (ssize_t)n);
    assert_int_equal(close(fd), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

/* Refused with that reason, and nothing written. */
static void assert_refused(const char *path, const char *words)
{
    dafl_secret_identity id, before;
    dafl_why why = {""};

    random_bytes(&before, sizeof before);
    id = before;
    assert_int_equal(dafl_identity_load(&id, path, &why), DAFL_ERR_INPUT);
    assert_memory_equal(&id, &before, sizeof id);
    assert_says(&why, path);
    assert_says(&why, words);
}

/* ---- known answers ---- */

static void identities_equal_the_independent_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(identity_known); i++) {
        uint8_t seed[64];
        char line[DAFL_IDENTITY_LINE_MAX];
        dafl_secret_identity id;
        dafl_digest digest;
        dafl_signature sig, known;

        from_hex(seed, sizeof seed, identity_known[i].seed);
        from_hex(digest.b, sizeof digest.b, identity_known[i].digest);
        from_hex(known.b, sizeof known.b, identity_known[i].signature);
        assert_ok(
            dafl_identity_new_derand(&id, identity_known[i].name, seed, NULL));
        dafl_identity_format(line, &id.public);
        assert_string_equal(line, identity_known[i].line);
        dafl_sign(&sig, &digest, &id);
        assert_memory_equal(&sig, &known, sizeof sig);
        assert_ok(dafl_sign_check(&known, &digest, id.public.sign_pk));
    }
}

/* ---- names ---- */

static void names_are_of_few_characters_and_not_too_long(void **state)
{
    char name[DAFL_NAME_MAX + 2] = "";
    dafl_secret_identity id, before;
    dafl_why why = {""};
    uint8_t seed[64] = {0};

    (void)state;
    random_bytes(&before, sizeof before);
    for (int c = 1; c < 256; c++) {
        bool ok = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789-_.",
                         c) != NULL;

        (void)snprintf(name, sizeof name, "a%cb", c);
        id = before;
        assert_int_equal(dafl_identity_new_derand(&id, name, seed, &why),
                         ok ? DAFL_OK : DAFL_ERR_INPUT);
        if (ok)
            assert_string_equal(id.public.name, name);
        else
            assert_memory_equal(&id, &before, sizeof id);
    }
    assert_int_equal(dafl_identity_new(&id, "", &why), DAFL_ERR_INPUT);
    assert_says(&why, "name");
    memset(name, 'n', DAFL_NAME_MAX);
    assert_ok(dafl_identity_new(&id, name, &why));
    assert_string_equal(id.public.name, name);
    name[DAFL_NAME_MAX] = 'n';
    assert_int_equal(dafl_identity_new(&id, name, &why), DAFL_ERR_INPUT);
    assert_int_equal(dafl_identity_new(&id, name, NULL), DAFL_ERR_INPUT);
}

static void new_identities_differ_and_wiped_ones_are_zero(void **state)
{
    dafl_secret_identity a, b;

    (void)state;
    assert_ok(dafl_identity_new(&a, "a", NULL));
    assert_ok(dafl_identity_new(&b, "a", NULL));
    assert_memory_not_equal(a.public.sign_pk, b.public.sign_pk, 32);
    assert_memory_not_equal(&a.public.curve_pk, &b.public.curve_pk, 32);
    /* The two pairs of one identity come from different halves of the seed. */
    assert_memory_not_equal(a.sign_sk, a.curve_sk.b, 32);
    dafl_identity_wipe(&a);
    assert_true(sodium_is_zero((const uint8_t *)&a, sizeof a));
}

/* ---- the public line ---- */

static void public_lines_come_back(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        char name[DAFL_NAME_MAX + 1] = "", line[DAFL_IDENTITY_LINE_MAX];
        dafl_secret_identity id;
        dafl_identity back;

        memset(name, 'n', random_size(1, DAFL_NAME_MAX));
        id = some_identity(name);
        dafl_identity_format(line, &id.public);
        random_bytes(&back, sizeof back);
        assert_ok(dafl_identity_parse(&back, line, NULL));
        assert_memory_equal(&back, &id.public, sizeof back);
    }
}

static void assert_no_line(const char *line)
{
    dafl_identity id, before;
    dafl_why why = {""};

    random_bytes(&before, sizeof before);
    id = before;
    if (dafl_identity_parse(&id, line, &why) != DAFL_ERR_INPUT)
        fail_msg("accepted: '%s'", line);
    assert_memory_equal(&id, &before, sizeof id);
    assert_true(strlen(why.text) > 0);
}

static void other_lines_are_refused(void **state)
{
    dafl_secret_identity id = some_identity("site");
    char line[DAFL_IDENTITY_LINE_MAX], bad[2 * DAFL_IDENTITY_LINE_MAX];
    size_t len;

    (void)state;
    dafl_identity_format(line, &id.public);
    len = strlen(line);
    for (size_t cut = 0; cut < len; cut++) {
        (void)snprintf(bad, sizeof bad, "%.*s", (int)cut, line);
        assert_no_line(bad);
        /* One character missing within, and one too many. */
        (void)snprintf(bad, sizeof bad, "%.*s%s", (int)cut, line,
                       line + cut + 1);
        if (cut >= strlen("site"))
            assert_no_line(bad);
        (void)snprintf(bad, sizeof bad, "%.*s0%s", (int)cut, line, line + cut);
        if (cut > strlen("site"))
            assert_no_line(bad);
    }
    /* A character that is neither of a name nor of hex nor there already. */
    for (size_t i = 0; i < len; i++)
        for (const char *c = "G\t\n \x01\x7f\xff:/"; *c != '\0'; c++) {
            memcpy(bad, line, len + 1);
            if (bad[i] == *c || (i < strlen("site") && *c == 'G'))
                continue;
            bad[i] = *c;
            assert_no_line(bad);
        }
    for (const char *const *tail =
             (const char *const[]){" ", "\n", "0", " x", "\r\n", NULL};
         *tail != NULL; tail++) {
        (void)snprintf(bad, sizeof bad, "%s%s", line, *tail);
        assert_no_line(bad);
    }
    (void)snprintf(bad, sizeof bad, " %s", line);
    assert_no_line(bad);
    (void)snprintf(bad, sizeof bad, "%s", line + strlen("site"));
    assert_no_line(bad);
    (void)snprintf(bad, sizeof bad, "%064d%s", 0, line + strlen("site"));
    assert_no_line(bad);
    (void)snprintf(bad, sizeof bad, "%063d%s", 0, line + strlen("site"));
    assert_ok(dafl_identity_parse(&id.public, bad, NULL));
    /* One spelling only: capitals are refused. */
    memcpy(bad, line, len + 1);
    for (size_t i = strlen("site ed25519:"); i < len; i++)
        if (bad[i] >= 'a' && bad[i] <= 'f') {
            bad[i] = (char)(bad[i] - 'a' + 'A');
            assert_no_line(bad);
            bad[i] = line[i];
        }
    assert_no_line("");
    assert_no_line(" ");
}

/* ---- the secret file ---- */

static void saved_identities_come_back(void **state)
{
    static const char *const names[] = {
        "a", "site-1",
        "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        dafl_secret_identity id = some_identity(names[i]), back;
        dafl_why why = {""};

        assert_ok(dafl_identity_save(&id, at(names[i]), &why));
        random_bytes(&back, sizeof back);
        assert_ok(dafl_identity_load(&back, at(names[i]), &why));
        assert_memory_equal(&back, &id, sizeof id);
    }
}

static void key_files_are_private_whatever_the_umask(void **state)
{
    static const mode_t masks[] = {0, 022, 077};
    dafl_secret_identity id = some_identity("site");

    (void)state;
    for (size_t i = 0; i < COUNT(masks); i++) {
        mode_t before = umask(masks[i]);
        struct stat st;

        assert_ok(dafl_identity_save(&id, at("key"), NULL));
        (void)umask(before);
        assert_int_equal(stat(at("key"), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(remove(at("key")), 0);
    }
}

static void existing_files_are_not_overwritten(void **state)
{
    dafl_secret_identity id = some_identity("site");
    dafl_why why = {""};
    char text[TEXT_MAX];

    (void)state;
    write_all(at("key"), "mine", 4);
    assert_int_equal(dafl_identity_save(&id, at("key"), &why), DAFL_ERR_INPUT);
    assert_says(&why, at("key"));
    assert_int_equal(read_all(text, at("key")), 4);
    assert_memory_equal(text, "mine", 4);
    /* Nor is a link that leads nowhere followed. */
    assert_int_equal(symlink(at("nowhere"), at("link")), 0);
    assert_int_equal(dafl_identity_save(&id, at("link"), &why), DAFL_ERR_INPUT);
    assert_int_equal(access(at("nowhere"), F_OK), -1);
    assert_int_equal(dafl_identity_save(&id, at("no/such/dir"), &why),
                     DAFL_ERR_INPUT);
    assert_int_equal(count_names(0), 2);
}

static void files_that_others_may_touch_are_refused(void **state)
{
    static const mode_t bad[] = {0644, 0640, 0602, 0660, 0604,
                                 0610, 0601, 0620, 0666, 0777};
    static const mode_t good[] = {0600, 0400, 0700};
    dafl_secret_identity id = some_identity("site"), back;

    (void)state;
    assert_ok(dafl_identity_save(&id, at("key"), NULL));
    for (size_t i = 0; i < COUNT(bad); i++) {
        char mode[8];

        (void)snprintf(mode, sizeof mode, "%03o", (unsigned)bad[i]);
        assert_int_equal(chmod(at("key"), bad[i]), 0);
        assert_refused(at("key"), mode);
    }
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_int_equal(chmod(at("key"), good[i]), 0);
        assert_ok(dafl_identity_load(&back, at("key"), NULL));
    }
}

static void files_of_another_owner_are_refused(void **state)
{
    dafl_secret_identity id = some_identity("site");

    (void)state;
    assert_ok(dafl_identity_save(&id, at("key"), NULL));
    if (chown(at("key"), 12345, (gid_t)-1) != 0) {
        print_message("only root can give a file away\n");
        skip();
    }
    assert_refused(at("key"), "another user");
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    assert_refused(at("missing"), "cannot open");
    assert_refused(dir, "not a regular file");
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    assert_refused(at("pipe"), "not a regular file");
}

static void truncated_files_are_refused_at_every_byte(void **state)
{
    dafl_secret_identity id = some_identity("site");
    struct stat st;
    size_t len;

    (void)state;
    assert_ok(dafl_identity_save(&id, at("key"), NULL));
    assert_int_equal(stat(at("key"), &st), 0);
    len = (size_t)st.st_size;
    while (len-- > 0) {
        assert_int_equal(truncate(at("key"), (off_t)len), 0);
        assert_refused(at("key"), "whole");
    }
}

static void files_with_bytes_behind_their_end_are_refused(void **state)
{
    static const char *const names[] = {
        "site",
        "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"};
    static const struct {
        const char *bytes;
        size_t len;
    } tails[] = {{"\n", 1}, {"x", 1}, {" \n", 2}, {"\0", 1}, {"\0seed", 5}};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        dafl_secret_identity id = some_identity(names[i]);
        char text[TEXT_MAX];
        size_t len;

        assert_ok(dafl_identity_save(&id, at("key"), NULL));
        len = read_all(text, at("key"));
        for (size_t k = 0; k < COUNT(tails); k++) {
            memcpy(text + len, tails[k].bytes, tails[k].len);
            write_all(at("key"), text, len + tails[k].len);
            assert_refused(at("key"), "whole");
        }
        assert_int_equal(remove(at("key")), 0);
    }
}

/* Every bit, every byte; but a name may be changed to another name, and of a
 * Curve25519 secret X25519 ignores five bits: then the identity is still that
 * of the keys. */
static void changed_files_are_refused_or_the_same_keys(void **state)
{
    dafl_secret_identity id = some_identity("site"), back;
    char text[TEXT_MAX];
    size_t len, name_at, scalar_at, accepted = 0;
    int fd;

    (void)state;
    assert_ok(dafl_identity_save(&id, at("key"), NULL));
    len = read_all(text, at("key"));
    text[len] = '\0';
    name_at = (size_t)(strstr(text, "site ") - text);
    scalar_at = (size_t)(strstr(text, "\nseed ") + 6 + 64 - text);
    fd = open(at("key"), O_WRONLY);
    assert_true(fd >= 0);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        bool name = bit / 8 >= name_at && bit / 8 < name_at + 4;
        bool clamped = bit / 8 == scalar_at + 1 || bit / 8 == scalar_at + 62;

        flip(text, bit);
        assert_true(pwrite(fd, text + bit / 8, 1, (off_t)(bit / 8)) == 1);
        if (!name && !clamped) {
            assert_refused(at("key"), "whole");
        } else if (dafl_identity_load(&back, at("key"), NULL) == DAFL_OK) {
            accepted++;
            assert_memory_equal(back.public.sign_pk, id.public.sign_pk, 32);
            assert_memory_equal(&back.public.curve_pk, &id.public.curve_pk, 32);
            assert_memory_equal(back.sign_sk, id.sign_sk, sizeof id.sign_sk);
            assert_true(name || strcmp(back.public.name, "site") == 0);
        }
        flip(text, bit);
        assert_true(pwrite(fd, text + bit / 8, 1, (off_t)(bit / 8)) == 1);
    }
    assert_int_equal(close(fd), 0);
    assert_ok(dafl_identity_load(&back, at("key"), NULL));
    print_message("%zu changes made another name or no difference\n", accepted);
}

static void a_file_whose_halves_do_not_match_is_refused(void **state)
{
    dafl_secret_identity a = some_identity("site"), b = some_identity("site");

    (void)state;
    b.public = a.public;
    assert_ok(dafl_identity_save(&b, at("public"), NULL));
    assert_refused(at("public"), "whole");
    b = a;
    random_bytes(&b.curve_sk, sizeof b.curve_sk);
    assert_ok(dafl_identity_save(&b, at("curve"), NULL));
    assert_refused(at("curve"), "whole");
}

/* ---- signatures ---- */

static void a_signature_holds_for_its_digest_and_signer_only(void **state)
{
    dafl_secret_identity id = some_identity("a"), other = some_identity("a");
    dafl_digest digest;
    dafl_signature sig, again;

    (void)state;
    random_bytes(&digest, sizeof digest);
    dafl_sign(&sig, &digest, &id);
    dafl_sign(&again, &digest, &id);
    assert_memory_equal(&sig, &again, sizeof sig);
    assert_ok(dafl_sign_check(&sig, &digest, id.public.sign_pk));
    assert_int_equal(dafl_sign_check(&sig, &digest, other.public.sign_pk),
                     DAFL_ERR_CRYPTO);
    for (size_t bit = 0; bit < 8 * sizeof sig; bit++) {
        flip(&sig, bit);
        assert_int_equal(dafl_sign_check(&sig, &digest, id.public.sign_pk),
                         DAFL_ERR_CRYPTO);
        flip(&sig, bit);
    }
    for (size_t bit = 0; bit < 8 * sizeof digest; bit++) {
        flip(&digest, bit);
        assert_int_equal(dafl_sign_check(&sig, &digest, id.public.sign_pk),
                         DAFL_ERR_CRYPTO);
        flip(&digest, bit);
    }
    for (size_t bit = 0; bit < 256; bit++) {
        flip(id.public.sign_pk, bit);
        assert_int_equal(dafl_sign_check(&sig, &digest, id.public.sign_pk),
                         DAFL_ERR_CRYPTO);
        flip(id.public.sign_pk, bit);
    }
    assert_ok(dafl_sign_check(&sig, &digest, id.public.sign_pk));
}

/* S + L is the same scalar: with it there would be two signatures. */
static void a_signature_has_one_form(void **state)
{
    static const uint8_t order[32] = {
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
        0xa2, 0xde, 0xf9, 0xde, 0x14, 0,    0,    0,    0,    0,    0,
        0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10};
    dafl_secret_identity id = some_identity("a");
    dafl_digest digest = {{1}};
    dafl_signature sig;
    unsigned carry = 0;

    (void)state;
    dafl_sign(&sig, &digest, &id);
    for (size_t i = 0; i < 32; i++) {
        carry += (unsigned)sig.b[32 + i] + order[i];
        sig.b[32 + i] = (uint8_t)carry;
        carry >>= 8;
    }
    assert_int_equal(carry, 0);
    assert_int_equal(dafl_sign_check(&sig, &digest, id.public.sign_pk),
                     DAFL_ERR_CRYPTO);
}

/* The neutral element as key and R, S = 0: fits every message. */
static void keys_of_low_order_sign_nothing(void **state)
{
    uint8_t pk[32] = {1};
    dafl_signature sig = {{1}};
    dafl_digest digest = {{7}};

    (void)state;
    assert_int_equal(dafl_sign_check(&sig, &digest, pk), DAFL_ERR_CRYPTO);
    memset(pk, 0, sizeof pk);
    assert_int_equal(dafl_sign_check(&sig, &digest, pk), DAFL_ERR_CRYPTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identities_equal_the_independent_model),
        cmocka_unit_test(names_are_of_few_characters_and_not_too_long),
        cmocka_unit_test(new_identities_differ_and_wiped_ones_are_zero),
        cmocka_unit_test(public_lines_come_back),
        cmocka_unit_test(other_lines_are_refused),
        CASE_IN_DIR(saved_identities_come_back),
        CASE_IN_DIR(key_files_are_private_whatever_the_umask),
        CASE_IN_DIR(existing_files_are_not_overwritten),
        CASE_IN_DIR(files_that_others_may_touch_are_refused),
        CASE_IN_DIR(files_of_another_owner_are_refused),
        CASE_IN_DIR(what_is_no_file_is_refused),
        CASE_IN_DIR(truncated_files_are_refused_at_every_byte),
        CASE_IN_DIR(files_with_bytes_behind_their_end_are_refused),
        CASE_IN_DIR(changed_files_are_refused_or_the_same_keys),
        CASE_IN_DIR(a_file_whose_halves_do_not_match_is_refused),
        cmocka_unit_test(a_signature_holds_for_its_digest_and_signer_only),
        cmocka_unit_test(a_signature_has_one_form),
        cmocka_unit_test(keys_of_low_order_sign_nothing),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
