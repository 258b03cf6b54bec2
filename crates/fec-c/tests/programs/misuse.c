/* What no caller should do, and what callbacks may: each has a status, and nothing is leaked or read that is not
 * there. */
#include <fec.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed;

#define EXPECT(what, expected)                                                                  \
    do {                                                                                        \
        long is = (long)(what), wanted = (long)(expected);                                      \
        if (is != wanted) {                                                                     \
            fprintf(stderr, "%s:%d: %s is %ld, not %ld\n", __FILE__, __LINE__, #what, is, wanted); \
            failed = 1;                                                                         \
        }                                                                                       \
    } while (0)

static ptrdiff_t end_at_once(void *context, uint8_t *buffer, size_t len)
{
    (void)context, (void)buffer, (void)len;
    return 0;
}

static ptrdiff_t read_fails(void *context, uint8_t *buffer, size_t len)
{
    (void)buffer;
    int *calls = context;
    if (*calls == 0)
        return -1;
    (*calls)--;
    memset(buffer, 7, len);
    return (ptrdiff_t)len;
}

static ptrdiff_t read_lies(void *context, uint8_t *buffer, size_t len)
{
    (void)context, (void)buffer;
    return (ptrdiff_t)len + 1;
}

static int write_nowhere(void *context, const uint8_t *bytes, size_t len)
{
    (void)context, (void)bytes, (void)len;
    return 0;
}

static int write_fails(void *context, const uint8_t *bytes, size_t len)
{
    (void)context, (void)bytes, (void)len;
    return 1;
}

/* Calls with a sentence, which must be there. */
#define REFUSED(call, expected)               \
    do {                                      \
        char *why = NULL;                     \
        EXPECT(call, expected);               \
        EXPECT(why != NULL && *why != 0, 1);  \
        fec_free_text(why);                   \
    } while (0)

static void nothing(void)
{
    static const uint8_t payload[3] = "abc";
    uint8_t root[32] = {0}, *bytes = NULL;
    size_t len = 0;
    fec_shards *shards = NULL;
    fec_bytes none = {0}, hollow = {.data = NULL, .len = 5};

    REFUSED(fec_encode(NULL, 3, NULL, root, &shards, &why), FEC_STATUS_USAGE);
    REFUSED(fec_encode(payload, SIZE_MAX, NULL, root, &shards, &why), FEC_STATUS_USAGE);
    REFUSED(fec_encode(payload, 3, NULL, root, NULL, &why), FEC_STATUS_USAGE);
    fec_options wrong[] = {{.k = 200, .m = 57}, {.m = 3}, {.hash = 2}, {.name = hollow}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        REFUSED(fec_encode(payload, 3, &wrong[i], root, &shards, &why), FEC_STATUS_USAGE);
    fec_options small = {.k = 100, .m = 1, .set_size = 64}, slash = {.name = {payload, 0}};
    REFUSED(fec_encode(payload, 3, &small, root, &shards, &why), FEC_STATUS_REFUSED);
    static const uint8_t path[] = "a/b";
    slash.name = (fec_bytes){path, 3};
    REFUSED(fec_encode(payload, 3, &slash, root, &shards, &why), FEC_STATUS_REFUSED);
    EXPECT(shards == NULL, 1);

    /* Outputs that nobody waits for, and an empty payload that is NULL. */
    EXPECT(fec_encode(NULL, 0, NULL, NULL, &shards, NULL), FEC_STATUS_OK);
    EXPECT(fec_shards_count(shards), 100);
    fec_free_shards(shards);
    fec_free_shards(NULL);
    fec_free_bytes(NULL, 0);
    fec_free_text(NULL);
    EXPECT(fec_shards_count(NULL), 0);
    EXPECT(fec_shards_get(NULL, 0).len, 0);
    EXPECT(fec_shards_name(NULL, 0) == NULL, 1);

    REFUSED(fec_decode(NULL, 1, NULL, &bytes, &len, &why), FEC_STATUS_USAGE);
    REFUSED(fec_decode(NULL, 0, NULL, &bytes, &len, &why), FEC_STATUS_LOST);
    REFUSED(fec_decode(&none, 1, NULL, &bytes, &len, &why), FEC_STATUS_LOST);
    REFUSED(fec_decode(&hollow, 1, NULL, &bytes, &len, &why), FEC_STATUS_USAGE);
    REFUSED(fec_decode(&none, 1, NULL, NULL, &len, &why), FEC_STATUS_USAGE);
    REFUSED(fec_decode(&none, 1, NULL, &bytes, NULL, &why), FEC_STATUS_USAGE);
    EXPECT(fec_decode(&none, 1, root, &bytes, &len, NULL), FEC_STATUS_LOST);
    EXPECT(bytes == NULL && len == 0, 1);
    REFUSED(fec_verify(NULL, 7, NULL, NULL, &why), FEC_STATUS_USAGE);
    REFUSED(fec_verify(&none, 1, NULL, NULL, &why), FEC_STATUS_LOST);
    REFUSED(fec_verify_shard(NULL, payload, 3, NULL, &why), FEC_STATUS_USAGE);
    REFUSED(fec_verify_shard(root, NULL, 3, NULL, &why), FEC_STATUS_USAGE);
    REFUSED(fec_verify_shard(root, payload, 3, NULL, &why), FEC_STATUS_LOST);
}

static void callbacks(void)
{
    char *why = NULL;
    fec_options one = {.k = 4, .m = 2, .threads = 1}, many = {.k = 4, .m = 2, .threads = 3};
    REFUSED(fec_encode_stream(NULL, NULL, write_nowhere, NULL, NULL, NULL, &why), FEC_STATUS_USAGE);
    REFUSED(fec_encode_stream(end_at_once, NULL, NULL, NULL, NULL, NULL, &why), FEC_STATUS_USAGE);
    REFUSED(fec_decode_stream(NULL, NULL, write_nowhere, NULL, NULL, &why), FEC_STATUS_USAGE);
    REFUSED(fec_decode_stream(end_at_once, NULL, NULL, NULL, NULL, &why), FEC_STATUS_USAGE);
    EXPECT(fec_encode_stream(end_at_once, NULL, write_nowhere, NULL, NULL, NULL, &why), FEC_STATUS_OK);
    REFUSED(fec_decode_stream(end_at_once, NULL, write_nowhere, NULL, NULL, &why), FEC_STATUS_LOST);
    for (int calls = 0; calls < 60; calls += 20) {
        int left = calls;
        REFUSED(fec_encode_stream(read_fails, &left, write_nowhere, NULL, &one, NULL, &why), FEC_STATUS_IO);
        left = calls;
        REFUSED(fec_encode_stream(read_fails, &left, write_nowhere, NULL, &many, NULL, &why), FEC_STATUS_IO);
        left = calls;
        REFUSED(fec_decode_stream(read_fails, &left, write_nowhere, NULL, NULL, &why), FEC_STATUS_IO);
    }
    REFUSED(fec_encode_stream(read_lies, NULL, write_nowhere, NULL, &one, NULL, &why), FEC_STATUS_IO);
    REFUSED(fec_encode_stream(end_at_once, NULL, write_fails, NULL, &one, NULL, &why), FEC_STATUS_IO);
    REFUSED(fec_encode_stream(end_at_once, NULL, write_fails, NULL, &many, NULL, &why), FEC_STATUS_IO);
}

static void roots(void)
{
    uint8_t root[32], again[32];
    char text[65];
    for (size_t i = 0; i < 32; i++)
        root[i] = (uint8_t)(i * 11);
    EXPECT(fec_root_to_text(root, text), FEC_STATUS_OK);
    EXPECT(strlen(text), 64);
    EXPECT(fec_root_from_text(text, again), FEC_STATUS_OK);
    EXPECT(memcmp(root, again, 32), 0);
    EXPECT(fec_root_to_text(NULL, text), FEC_STATUS_USAGE);
    EXPECT(fec_root_to_text(root, NULL), FEC_STATUS_USAGE);
    EXPECT(fec_root_from_text(NULL, root), FEC_STATUS_USAGE);
    EXPECT(fec_root_from_text(text, NULL), FEC_STATUS_USAGE);
    EXPECT(fec_root_from_text(text + 1, root), FEC_STATUS_USAGE);
    text[5] = 'g';
    EXPECT(fec_root_from_text(text, root), FEC_STATUS_USAGE);
    EXPECT(strlen(fec_version()) > 0, 1);
}

/* Many threads read the shards of one call, and each makes calls of its own. */
static void *work(void *context)
{
    const fec_shards *shards = context;
    fec_bytes some[4];
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < 4; i++)
            some[i] = fec_shards_get(shards, (i * 3 + (size_t)round) % fec_shards_count(shards));
        uint8_t *payload = NULL;
        size_t len = 0;
        if (fec_decode(some, 4, NULL, &payload, &len, NULL) != FEC_STATUS_OK || len != 10000)
            return context;
        fec_free_bytes(payload, len);
    }
    return NULL;
}

static void threads(void)
{
    uint8_t payload[10000];
    memset(payload, 3, sizeof payload);
    fec_options options = {.k = 4, .m = 6};
    fec_shards *shards = NULL;
    EXPECT(fec_encode(payload, sizeof payload, &options, NULL, &shards, NULL), FEC_STATUS_OK);
    pthread_t all[8];
    for (size_t i = 0; i < 8; i++)
        EXPECT(pthread_create(&all[i], NULL, work, shards), 0);
    for (size_t i = 0; i < 8; i++) {
        void *wrong;
        EXPECT(pthread_join(all[i], &wrong), 0);
        EXPECT(wrong == NULL, 1);
    }
    fec_free_shards(shards);
}

int main(void)
{
    nothing();
    callbacks();
    roots();
    threads();
    return failed;
}
