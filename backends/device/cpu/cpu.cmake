# SPDX-License-Identifier: Apache-2.0
#
# The CPU device. Files under isa/<name>/ are compiled with that instruction set's flags and chosen at run time; nothing else is
# (no -march=native), so one build runs on any x86-64.
file(GLOB cpu_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/backends/device/cpu/*.c)
if(cpu_sources)
  add_library(reel_cpu_objects OBJECT ${cpu_sources})
  reel_compile(reel_cpu_objects)
  list(APPEND REEL_OBJECTS $<TARGET_OBJECTS:reel_cpu_objects>)
endif()
set(isa_flags_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(isa_flags_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mfma -mf16c -mbmi2)
set(isa_flags_avx512bf16 ${isa_flags_avx512} -mavx512bf16)
foreach(isa avx2 avx512 avx512bf16)
  file(GLOB isa_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/backends/device/cpu/isa/${isa}/*.c)
  if(isa_sources AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_library(reel_cpu_${isa}_objects OBJECT ${isa_sources})
    reel_compile(reel_cpu_${isa}_objects)
    target_compile_options(reel_cpu_${isa}_objects PRIVATE ${isa_flags_${isa}} -O3)
    list(APPEND REEL_OBJECTS $<TARGET_OBJECTS:reel_cpu_${isa}_objects>)
  endif()
endforeach()

# Speed of single operations; see the file's first lines. Built on demand.
add_executable(bench_cpu_ops EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/kernels/cpu_ops.c)
reel_compile(bench_cpu_ops)
target_link_libraries(bench_cpu_ops PRIVATE reel_static)
