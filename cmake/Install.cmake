# SPDX-License-Identifier: Apache-2.0
# What is installed: the programs, their manual pages and licence, and completions of the kubectl
# plugin. Each program is a component, and each component a Debian package (Package.cmake).
include(GNUInstallDirs)

set(gs_programs gpushare-extender gpushare-device-plugin gpushare-mps kubectl-inspect-gpushare
                gpushare-sim)
set(gs_completions ${CMAKE_SOURCE_DIR}/share/completions)

foreach(program IN LISTS gs_programs)
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${program})
    install(FILES ${CMAKE_SOURCE_DIR}/docs/man/${program}.1
            DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${program})
    install(FILES ${CMAKE_SOURCE_DIR}/LICENSE RENAME copyright
            DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${program} COMPONENT ${program})
endforeach()
install(FILES ${gs_completions}/kubectl-inspect-gpushare.bash RENAME kubectl-inspect-gpushare
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        COMPONENT kubectl-inspect-gpushare)
install(FILES ${gs_completions}/_kubectl-inspect-gpushare
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT kubectl-inspect-gpushare)
install(FILES ${gs_completions}/kubectl-inspect-gpushare.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
        COMPONENT kubectl-inspect-gpushare)
# kubectl asks this program to complete "kubectl inspect gpushare".
install(PROGRAMS ${gs_completions}/kubectl_complete-inspect-gpushare
        DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT kubectl-inspect-gpushare)
