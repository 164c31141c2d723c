/* code_mark.h - included before every source of kernels: notes where the code of its object begins, in a section for
   each instruction set (cpu_unused.c). Assembly at the top of a file stays there, whatever the compiler does with
   functions. */
#ifndef CPU_CODE_MARK_H
#define CPU_CODE_MARK_H

#if defined(__AVX512F__)
#define CODE_OF "avx512"
#elif defined(__AVX2__)
#define CODE_OF "avx2"
#else
#define CODE_OF "plain"
#endif

__asm__(".text\n"
        "plim_code_begins_" CODE_OF ":\n"
        ".pushsection plim_code_" CODE_OF ", \"aw\"\n"
        ".balign 8\n"
        ".quad plim_code_begins_" CODE_OF "\n"
        ".popsection\n");

#endif
