# SPDX-License-Identifier: Apache-2.0
#
# Every tests/{unit,ops,stages}/test_*.c is one CMocka program and one CTest test of the same name, labelled with its folder. Files of these
# folders without the prefix, and tests/<folder>/cases, are helpers that all programs of the folder share. tests/e2e/test_*.sh run the built program.
find_package(PkgConfig REQUIRED)
pkg_check_modules(cmocka REQUIRED IMPORTED_TARGET cmocka)

function(reel_test_compile target tier)
  reel_compile(${target})
  target_include_directories(${target} PRIVATE tests tests/${tier})
  target_compile_definitions(${target} PRIVATE REEL_SOURCE_DIR="${CMAKE_SOURCE_DIR}" REEL_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(${target} PRIVATE PkgConfig::cmocka)
endfunction()

include(backends/device/template/template.cmake)

foreach(tier unit ops stages)
  file(GLOB helpers CONFIGURE_DEPENDS tests/${tier}/*.c tests/${tier}/cases/*.c tests/common/*.c)
  list(FILTER helpers EXCLUDE REGEX "/test_[^/]*\\.c$")
  if(helpers)
    add_library(${tier}_helpers OBJECT ${helpers})
    reel_test_compile(${tier}_helpers ${tier})
  endif()
  file(GLOB tests CONFIGURE_DEPENDS tests/${tier}/test_*.c)
  foreach(source ${tests})
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "^test_" "${tier}_" target ${name})
    add_executable(${target} ${source})
    reel_test_compile(${target} ${tier})
    if(helpers)
      target_link_libraries(${target} PRIVATE ${tier}_helpers)
    endif()
    target_link_libraries(${target} PRIVATE reel_cli reel_static PkgConfig::cmocka)
    add_dependencies(${target} reel-device-template)
    add_test(NAME ${target} COMMAND ${target})
    # threads that wait must not spin: tests share the machine with each other
    set_tests_properties(${target} PROPERTIES LABELS ${tier} TIMEOUT 300 ENVIRONMENT OMP_WAIT_POLICY=passive)
  endforeach()
endforeach()

# Stages again with lowered instruction sets (tests/stages/stage_bed.c reads the variable): what this machine has may hide what others get.
foreach(isa avx2 avx512)
  foreach(stage dit umt5 random_dit random_umt5)
    add_test(NAME stages_${stage}_${isa} COMMAND stages_${stage})
    set_tests_properties(stages_${stage}_${isa} PROPERTIES LABELS stages TIMEOUT 300 ENVIRONMENT "OMP_WAIT_POLICY=passive;REEL_TEST_ISA=${isa}")
  endforeach()
endforeach()

file(GLOB scripts CONFIGURE_DEPENDS tests/e2e/test_*.sh)
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  string(REGEX REPLACE "^test_" "e2e_" target ${name})
  add_test(NAME ${target} COMMAND bash ${script} $<TARGET_FILE:reel> ${CMAKE_SOURCE_DIR})
  set_tests_properties(${target} PROPERTIES LABELS e2e TIMEOUT 900)
endforeach()
