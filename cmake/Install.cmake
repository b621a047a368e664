# SPDX-License-Identifier: Apache-2.0
# What a package holds: the four programs, their manual pages, and completions of the kubectl plugin.
include(GNUInstallDirs)

set(gs_programs gpushare-extender gpushare-device-plugin kubectl-inspect-gpushare gpushare-sim)
set(gs_completions ${CMAKE_SOURCE_DIR}/share/completions)

install(TARGETS ${gs_programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
foreach(program IN LISTS gs_programs)
    install(FILES ${CMAKE_SOURCE_DIR}/docs/man/${program}.1
            DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endforeach()
install(FILES ${gs_completions}/kubectl-inspect-gpushare.bash RENAME kubectl-inspect-gpushare
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${gs_completions}/_kubectl-inspect-gpushare
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${gs_completions}/kubectl-inspect-gpushare.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
# kubectl asks this program to complete "kubectl inspect gpushare".
install(PROGRAMS ${gs_completions}/kubectl_complete-inspect-gpushare
        DESTINATION ${CMAKE_INSTALL_BINDIR})
