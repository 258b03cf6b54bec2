/* Copies a file, or standard input, through a container: encode on one side, decode on the other, by callbacks.
 *
 *     pipe encode < file > file.fec      prints the root on standard error
 *     pipe decode ROOT < file.fec > file
 */
#include <fec.h>
#include <stdio.h>
#include <string.h>

static ptrdiff_t read_file(void *file, uint8_t *buffer, size_t len)
{
    size_t got = fread(buffer, 1, len, file);
    return got == 0 && ferror(file) ? -1 : (ptrdiff_t)got;
}

static int write_file(void *file, const uint8_t *bytes, size_t len)
{
    return fwrite(bytes, 1, len, file) == len ? 0 : 1;
}

int main(int argc, char **argv)
{
    uint8_t root[32];
    char digits[65], *why = NULL;
    fec_status status = FEC_STATUS_USAGE;
    if (argc == 2 && strcmp(argv[1], "encode") == 0) {
        fec_options options = {.k = 20, .m = 4};
        status = fec_encode_stream(read_file, stdin, write_file, stdout, &options, root, &why);
        if (status == FEC_STATUS_OK && fec_root_to_text(root, digits) == FEC_STATUS_OK)
            fprintf(stderr, "%s\n", digits);
    } else if (argc == 3 && strcmp(argv[1], "decode") == 0 && fec_root_from_text(argv[2], root) == FEC_STATUS_OK) {
        status = fec_decode_stream(read_file, stdin, write_file, stdout, root, &why);
    }
    /* What went out counts only now. */
    if (fflush(stdout) != 0 && status == FEC_STATUS_OK)
        status = FEC_STATUS_IO;
    if (status != FEC_STATUS_OK)
        fprintf(stderr, "status %d: %s\n", (int)status, why ? why : "encode, or decode ROOT");
    fec_free_text(why);
    return (int)status;
}
