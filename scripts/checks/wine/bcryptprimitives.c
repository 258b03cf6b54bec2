/* Rust's standard library takes its randomness from this library, which Wine lacks before version 9. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID out, ULONG len);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE out, SIZE_T len)
{
    while (len > 0) {
        ULONG part = len > 1 << 20 ? 1 << 20 : (ULONG)len;
        if (!SystemFunction036(out, part))
            return FALSE;
        out += part;
        len -= part;
    }
    return TRUE;
}
