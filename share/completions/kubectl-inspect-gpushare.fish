# SPDX-License-Identifier: Apache-2.0
#
# fish completion for kubectl-inspect-gpushare. Install as
# /usr/share/fish/vendor_completions.d/kubectl-inspect-gpushare.fish. For `kubectl inspect gpushare`
# itself see kubectl_complete-inspect-gpushare beside this file.

set -l prog kubectl-inspect-gpushare
set -l commands show map stranded limits why what-if usage snapshot defrag nodeoverlay web doctor

# The words so far name this command; "show" where they name none.
function __gpushare_command
    for word in (commandline -opc)
        if contains -- $word show map stranded limits why what-if usage snapshot defrag nodeoverlay web doctor
            test $word = $argv[1]
            return
        end
    end
    test $argv[1] = show
end

# What was said about the cluster and the namespace holds for what is offered, too.
function __gpushare_names
    set -l where
    set -l words (commandline -opc)
    for i in (seq (count $words))
        switch $words[$i]
            case -n --namespace --kubeconfig --context
                set -a where $words[$i] $words[(math $i + 1)]
            case '--namespace=*' '--kubeconfig=*' '--context=*'
                set -a where $words[$i]
        end
    end
    kubectl $where get $argv -o name 2>/dev/null | string replace -r '.*/' ''
end

complete -c $prog -f
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a show -d 'the tables'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a map -d 'every GPU a bar, every pod a letter'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a stranded -d 'free memory of no use, and why'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a limits -d 'whether pods are kept to their share'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a why -d 'who waits and why, or beside whom a pod runs'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a what-if -d 'how many such pods would fit'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a usage -d 'what pods truly use'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a snapshot -d 'the cluster as a file'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a defrag -d 'which pods would have to move'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a nodeoverlay -d 'what Karpenter has to know of instance types'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a web -d 'a live page'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a doctor -d 'what is wrong with the installation'

complete -c $prog -l kubeconfig -r -F -d 'kubeconfig file'
complete -c $prog -l context -x -a '(kubectl config get-contexts -o name 2>/dev/null)' -d 'context of the kubeconfig'
complete -c $prog -s n -l namespace -x -a '(__gpushare_names namespaces)' -d namespace
complete -c $prog -l domain -x -d 'domain of resources and annotations'
complete -c $prog -l request-timeout -x -d 'how long one answer may take'
complete -c $prog -s h -l help -d 'show the options'
complete -c $prog -l version -d 'show the version'

complete -c $prog -n '__gpushare_command show; or __gpushare_command map; or __gpushare_command limits; or __gpushare_command usage' -a '(__gpushare_names nodes -l gpushare=true)' -d node
complete -c $prog -n '__gpushare_command show' -s d -l details -d 'pods per GPU'
complete -c $prog -n '__gpushare_command show' -s o -l output -x -a 'table wide json yaml' -d format
complete -c $prog -n '__gpushare_command show; or __gpushare_command map; or __gpushare_command limits; or __gpushare_command why' -s w -l watch -d 'print again on changes'
complete -c $prog -n '__gpushare_command show; or __gpushare_command map; or __gpushare_command nodeoverlay' -s l -l selector -x -d 'labels of nodes'
complete -c $prog -n '__gpushare_command show; or __gpushare_command map' -l sort -x -a 'name free used largest stranded pods' -d order

complete -c $prog -n '__gpushare_command show; or __gpushare_command map; or __gpushare_command why; or __gpushare_command usage' -s A -l all-namespaces -d 'pods of all namespaces'
complete -c $prog -n '__gpushare_command why; or __gpushare_command map; or __gpushare_command limits; or __gpushare_command defrag; or __gpushare_command snapshot; or __gpushare_command what-if; or __gpushare_command usage; or __gpushare_command doctor' -s o -l output -x -a 'text json yaml' -d format
complete -c $prog -n '__gpushare_command usage' -l by -x -a 'owner pod' -d 'one line for each'
complete -c $prog -n '__gpushare_command doctor' -l strict -d 'warnings fail, too'
complete -c $prog -n '__gpushare_command why' -a '(__gpushare_names pods)' -d pod

complete -c $prog -n '__gpushare_command what-if' -s m -l gpu-mem -x -d 'units of each GPU'
complete -c $prog -n '__gpushare_command what-if' -s f -l filename -r -F -d 'pods of a manifest'
complete -c $prog -n '__gpushare_command what-if' -l add-node -x -a '(__gpushare_names nodes -l gpushare=true)' -d 'as if there were more like it'
complete -c $prog -n '__gpushare_command what-if' -l without-node -x -a '(__gpushare_names nodes -l gpushare=true)' -d 'as if it were drained'
complete -c $prog -n '__gpushare_command what-if' -l until-fit -d 'as many of these as it takes'
complete -c $prog -n '__gpushare_command what-if' -l waiting -d 'who of those that wait would start'
complete -c $prog -n '__gpushare_command what-if' -l ignore-waiting -d 'as if no pod waited'
complete -c $prog -n '__gpushare_command what-if' -s c -l gpu-count -x -d 'GPUs per pod'
complete -c $prog -n '__gpushare_command what-if' -l gpu-core -x -d 'percent of one GPU\'s compute per pod'
complete -c $prog -n '__gpushare_command what-if' -s r -l replicas -x -d 'how many pods'
complete -c $prog -n '__gpushare_command what-if' -l gpu-model -x -d 'only these models'
complete -c $prog -n '__gpushare_command what-if' -l policy -x -a 'binpack spread fgd rollout' -d placement

complete -c $prog -n '__gpushare_command snapshot' -F
complete -c $prog -n '__gpushare_command snapshot' -l diff -r -F -d 'what changed since this file'
complete -c $prog -n '__gpushare_command snapshot' -l hash-names -d 'numbers for names'

complete -c $prog -n '__gpushare_command defrag' -l free-node -x -a '(__gpushare_names nodes -l gpushare=true)' -d 'move all pods off this node'
complete -c $prog -n '__gpushare_command defrag' -l max-moves -x -d 'pods that move for one'
complete -c $prog -n '__gpushare_command defrag' -l policy -x -a 'binpack spread fgd rollout' -d placement
complete -c $prog -n '__gpushare_command nodeoverlay' -l type -x -d 'types by hand, as p4d.24xlarge=8x39'
complete -c $prog -n '__gpushare_command web' -l listen -x -d 'address of this machine'
complete -c $prog -n '__gpushare_command web' -l no-token -d 'the way to it is the login'

complete -c $prog -n '__gpushare_command show; or __gpushare_command usage' -l timeout -x -d 'of all device plugins together'
complete -c $prog -n '__gpushare_command show; or __gpushare_command why; or __gpushare_command usage; or __gpushare_command web; or __gpushare_command doctor' -l system-namespace -x -a '(__gpushare_names namespaces)' -d 'of extender and plugin'
complete -c $prog -n '__gpushare_command doctor' -l scheduler-config -r -F -d "kube-scheduler's file"
complete -c $prog -n '__gpushare_command doctor' -l extender -x -d 'URL of the extender'
complete -c $prog -n '__gpushare_command doctor' -l extender-ca -r -F -d 'CA of its certificate'
complete -c $prog -n '__gpushare_command doctor' -l extender-cert -r -F -d 'certificate to show it'
complete -c $prog -n '__gpushare_command doctor' -l extender-key -r -F -d 'key of that certificate'
complete -c $prog -n '__gpushare_command doctor' -l extender-server-name -x -d 'what its certificate names'
