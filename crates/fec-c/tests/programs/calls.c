/* Makes the calls that standard input asks for, and tells their results on standard output. tests/common/mod.rs is the
 * other side, and says what the bytes are. Numbers are little-endian, as on every machine that runs the tests. */
#include <fec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void give_up(const char *why)
{
    fprintf(stderr, "calls: %s\n", why);
    exit(99);
}

static void get(void *out, size_t len)
{
    if (len > 0 && fread(out, len, 1, stdin) != 1)
        give_up("a request ends early");
}

static void put(const void *bytes, size_t len)
{
    if (len > 0 && fwrite(bytes, len, 1, stdout) != 1)
        give_up("nobody listens");
}

/* Exactly as much memory as there are bytes, so that a read behind them is found. */
static fec_bytes get_bytes(void)
{
    uint64_t len;
    get(&len, sizeof len);
    uint8_t *data = malloc(len > 0 ? (size_t)len : 1);
    if (data == NULL)
        give_up("no memory");
    get(data, (size_t)len);
    return (fec_bytes){.data = data, .len = (size_t)len};
}

static void put_bytes(const void *data, size_t len)
{
    uint64_t told = len;
    put(&told, sizeof told);
    put(data, len);
}

/* The status, and the sentence, which there is if and only if something is wrong. */
static void put_status(fec_status status, char **sentence)
{
    char *why = *sentence;
    int32_t told = (int32_t)status;
    put(&told, sizeof told);
    if ((status == FEC_STATUS_OK) != (why == NULL))
        give_up("a status without its sentence, or the other way round");
    put_bytes(why, why != NULL ? strlen(why) : 0);
    fec_free_text(why);
    *sentence = NULL;
}

struct reader {
    fec_bytes bytes;
    size_t at;
};

/* Few bytes at a time, in odd numbers. */
static ptrdiff_t read_some(void *context, uint8_t *buffer, size_t len)
{
    struct reader *reader = context;
    size_t left = reader->bytes.len - reader->at, most = 1 + (reader->at * 7) % 9973;
    size_t some = left < len ? left : len;
    some = some < most ? some : most;
    if (some > 0)
        memcpy(buffer, reader->bytes.data + reader->at, some);
    reader->at += some;
    return (ptrdiff_t)some;
}

struct writer {
    uint8_t *data;
    size_t len, room;
};

static int write_all(void *context, const uint8_t *bytes, size_t len)
{
    struct writer *writer = context;
    if (writer->len + len > writer->room) {
        writer->room = 2 * (writer->len + len);
        writer->data = realloc(writer->data, writer->room);
        if (writer->data == NULL)
            give_up("no memory");
    }
    memcpy(writer->data + writer->len, bytes, len);
    writer->len += len;
    return 0;
}

static void encode(int is_stream)
{
    fec_options options = {0};
    get(&options.k, 4);
    get(&options.m, 4);
    get(&options.hash, 4);
    get(&options.threads, 4);
    get(&options.set_size, 8);
    get(&options.group_sets, 4);
    options.name = get_bytes();
    fec_bytes payload = get_bytes();
    uint8_t root[32] = {0};
    char *why = NULL;
    if (is_stream) {
        struct reader reader = {.bytes = payload};
        struct writer writer = {0};
        put_status(fec_encode_stream(read_some, &reader, write_all, &writer, &options, root, &why), &why);
        put(root, sizeof root);
        put_bytes(writer.data, writer.len);
        free(writer.data);
    } else {
        fec_shards *shards = NULL;
        put_status(fec_encode(payload.data, payload.len, &options, root, &shards, &why), &why);
        put(root, sizeof root);
        uint64_t count = fec_shards_count(shards);
        put(&count, sizeof count);
        for (size_t i = 0; i < count; i++) {
            fec_bytes shard = fec_shards_get(shards, i);
            put_bytes(fec_shards_name(shards, i), strlen(fec_shards_name(shards, i)));
            put_bytes(shard.data, shard.len);
        }
        if (fec_shards_get(shards, (size_t)count).data != NULL || fec_shards_name(shards, (size_t)count) != NULL)
            give_up("a shard that is not there");
        fec_free_shards(shards);
    }
    free((void *)(uintptr_t)payload.data);
    free((void *)(uintptr_t)options.name.data);
}

static void decode(const fec_bytes *inputs, size_t count, const uint8_t *root)
{
    uint8_t *payload = NULL;
    size_t len = 0;
    char *why = NULL;
    put_status(fec_decode(inputs, count, root, &payload, &len, &why), &why);
    put_bytes(payload, len);
    fec_free_bytes(payload, len);
}

static void verify(const fec_bytes *inputs, size_t count, const uint8_t *root)
{
    fec_report report = {0};
    char *why = NULL;
    put_status(fec_verify(inputs, count, root, &report, &why), &why);
    put(report.root, 32);
    put(&report.k, 4);
    put(&report.m, 4);
    put(&report.intact, 4);
    put(&report.damaged, 4);
    put(&report.missing, 4);
    put(&report.may_still_lose, 4);
    put(&report.payload_len, 8);
}

static void look(void)
{
    uint8_t has_root, root[32];
    uint64_t count;
    char *why = NULL;
    get(&has_root, 1);
    get(root, sizeof root);
    get(&count, sizeof count);
    fec_bytes *inputs = calloc((size_t)count + 1, sizeof *inputs);
    if (inputs == NULL)
        give_up("no memory");
    for (size_t i = 0; i < count; i++)
        inputs[i] = get_bytes();
    const uint8_t *wanted = has_root ? root : NULL;
    decode(inputs, (size_t)count, wanted);
    verify(inputs, (size_t)count, wanted);
    for (size_t i = 0; has_root && i < count; i++) {
        fec_shard_info info = {0};
        put_status(fec_verify_shard(root, inputs[i].data, inputs[i].len, &info, &why), &why);
        put(&info.index, 4);
    }
    if (count == 1) {
        struct reader reader = {.bytes = inputs[0]};
        struct writer writer = {0};
        put_status(fec_decode_stream(read_some, &reader, write_all, &writer, wanted, &why), &why);
        put_bytes(writer.data, writer.len);
        free(writer.data);
    }
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)inputs[i].data);
    free(inputs);
}

int main(void)
{
    int kind;
    while ((kind = getchar()) != EOF) {
        switch (kind) {
        case 'E': encode(0); break;
        case 'S': encode(1); break;
        case 'L': look(); break;
        default: give_up("no such request");
        }
        fflush(stdout);
    }
    return 0;
}
