/* Encodes a payload to 10 + 4 shards, loses three and damages one, and restores it by what is left.
 *
 *     cc -Wall protect.c $(pkg-config --cflags --libs fec) -o protect
 */
#include <fec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sentence is read after the call: arguments are evaluated in any order. */
static void check(fec_status status, char **why)
{
    if (status == FEC_STATUS_OK)
        return;
    fprintf(stderr, "fec: status %d: %s\n", (int)status, *why ? *why : "");
    fec_free_text(*why);
    exit((int)status);
}

int main(void)
{
    static const uint8_t payload[] = "the only copy of something";
    fec_options options = {.k = 10, .m = 4};
    uint8_t root[32];
    char digits[65], *why = NULL;
    fec_shards *shards = NULL;

    check(fec_encode(payload, sizeof payload, &options, root, &shards, &why), &why);
    fec_root_to_text(root, digits);
    printf("root %s: %zu shards, %s and others\n", digits, fec_shards_count(shards), fec_shards_name(shards, 0));

    /* Each shard is proved alone, by the root. */
    fec_bytes last = fec_shards_get(shards, 13);
    fec_shard_info info;
    check(fec_verify_shard(root, last.data, last.len, &info, &why), &why);
    printf("shard %u of %u + %u is intact\n", info.index, info.k, info.m);

    /* Shards 0 to 2 are lost, and a byte of shard 3 is wrong. */
    fec_bytes left[11];
    for (size_t i = 0; i < 11; i++)
        left[i] = fec_shards_get(shards, i + 3);
    uint8_t *damaged = malloc(left[0].len);
    if (damaged == NULL)
        return 1;
    memcpy(damaged, left[0].data, left[0].len);
    damaged[left[0].len / 2] ^= 1;
    left[0].data = damaged;

    fec_report report;
    fec_status status = fec_verify(left, 11, root, &report, &why);
    printf("status %d: %s; %d more may be lost\n", (int)status, why ? why : "all is well", report.may_still_lose);
    fec_free_text(why);

    uint8_t *restored;
    size_t restored_len;
    check(fec_decode(left, 11, root, &restored, &restored_len, &why), &why);
    printf("%zu bytes restored: %s\n", restored_len, (const char *)restored);
    int is_same = restored_len == sizeof payload && memcmp(restored, payload, restored_len) == 0;
    fec_free_bytes(restored, restored_len);
    free(damaged);
    fec_free_shards(shards);
    return is_same ? 0 : 1;
}
