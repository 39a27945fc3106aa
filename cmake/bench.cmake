# SPDX-License-Identifier: Apache-2.0
#
# Every bench/kernels/<name>.c is a program bench_<name>, built only when asked for (ninja bench_<name>), unless its device has made it.
file(GLOB bench_sources CONFIGURE_DEPENDS bench/kernels/*.c)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  if(NOT TARGET bench_${name})
    add_executable(bench_${name} EXCLUDE_FROM_ALL ${source})
    reel_compile(bench_${name})
    target_link_libraries(bench_${name} PRIVATE reel_static)
  endif()
endforeach()
