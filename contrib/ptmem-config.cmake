# Tests that fail if a program needs too much memory:
#
#	find_package(ptmem REQUIRED)
#	add_memory_test(NAME orders-memory COMMAND orders 100
#	                LIMITS "peak<3M" "allocations@parse_config<=10")
#
#	add_memory_test(NAME <name> COMMAND <target or program> [<argument>...]
#	                LIMITS <limit>... | LIMITS_FILE <file>
#	                [OPTIONS <option of ptmem>...])
#
# LIMITS and LIMITS_FILE are ptmem's --limit and --limits-file; with "leaked<...", leaks are
# checked. A limit that is exceeded fails the test, and its output names the call sites at fault.
# The massif file of the run is <name>.massif in the current binary directory, with _ for each / of
# the name.

find_program(ptmem_EXECUTABLE ptmem HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ptmem REQUIRED_VARS ptmem_EXECUTABLE)

function(add_memory_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;LIMITS_FILE" "COMMAND;LIMITS;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "add_memory_test: unexpected: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_NAME OR NOT arg_COMMAND)
    message(FATAL_ERROR "add_memory_test: NAME and COMMAND are required")
  endif()
  if(NOT arg_LIMITS AND NOT arg_LIMITS_FILE)
    message(FATAL_ERROR "add_memory_test(${arg_NAME}): LIMITS or LIMITS_FILE is required")
  endif()

  set(options)
  set(leaks)
  foreach(limit IN LISTS arg_LIMITS)
    list(APPEND options "--limit=${limit}")
    if(limit MATCHES "^leaked")
      set(leaks TRUE)
    endif()
  endforeach()
  if(arg_LIMITS_FILE)
    get_filename_component(file "${arg_LIMITS_FILE}" ABSOLUTE)
    list(APPEND options "--limits-file=${file}")
    if(EXISTS "${file}")
      file(STRINGS "${file}" limits REGEX "^[ \t]*leaked")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
      if(limits)
        set(leaks TRUE)
      endif()
    endif()
  endif()
  if(leaks)
    list(APPEND options --leak-check=yes --show-leak-kinds=definite)
  endif()
  string(REPLACE "/" "_" output "${arg_NAME}")

  list(POP_FRONT arg_COMMAND program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  add_test(NAME ${arg_NAME}
           COMMAND ${ptmem_EXECUTABLE} -q -o ${CMAKE_CURRENT_BINARY_DIR}/${output}.massif
                   ${options} ${arg_OPTIONS} -- ${program} ${arg_COMMAND})
endfunction()
