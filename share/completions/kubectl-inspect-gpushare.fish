# SPDX-License-Identifier: Apache-2.0
#
# fish completion for kubectl-inspect-gpushare. Install as
# /usr/share/fish/vendor_completions.d/kubectl-inspect-gpushare.fish. For `kubectl inspect gpushare`
# itself see kubectl_complete-inspect-gpushare beside this file.

set -l prog kubectl-inspect-gpushare
set -l commands show map pods why what-if snapshot defrag web doctor

# The words so far name this command; "show" where they name none.
function __gpushare_command
    for word in (commandline -opc)
        if contains -- $word show map pods why what-if snapshot defrag web doctor
            test $word = $argv[1]
            return
        end
    end
    test $argv[1] = show
end

# Options for cluster and namespace apply to the candidates, too.
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
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a map -d 'a bar for each GPU, a letter for each pod'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a why -d 'pending pods and why, or the GPUs of one pod'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a what-if -d 'how many more pods would fit'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a pods -d 'memory that pods request and use'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a snapshot -d 'write the cluster to a file'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a defrag -d 'pods to move so that pending pods fit'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a web -d 'a live page'
complete -c $prog -n "not __fish_seen_subcommand_from $commands" -a doctor -d 'problems of the installation'

complete -c $prog -l kubeconfig -r -F -d 'kubeconfig file'
complete -c $prog -l context -x -a '(kubectl config get-contexts -o name 2>/dev/null)' -d 'context of the kubeconfig'
complete -c $prog -l from-file -r -F -d 'read nodes and pods from this file'
complete -c $prog -n 'not __fish_seen_subcommand_from what-if defrag snapshot' -s n -l namespace -x -a '(__gpushare_names namespaces)' -d namespace
complete -c $prog -l cluster -x -d 'cluster of the kubeconfig'
complete -c $prog -l user -x -d 'user of the kubeconfig'
complete -c $prog -l as -x -d 'user to impersonate'
complete -c $prog -l as-group -x -d 'group to impersonate'
complete -c $prog -l as-uid -x -d 'UID to impersonate'
complete -c $prog -l server -x -d 'API server on this machine'
complete -c $prog -l domain -x -d 'domain of resource names, labels and annotations'
complete -c $prog -l request-timeout -x -d 'timeout of one request'
complete -c $prog -s h -l help -d 'show the options'
complete -c $prog -l version -d 'show the version'

complete -c $prog -n '__gpushare_command show; or __gpushare_command map; or __gpushare_command pods' -a '(__gpushare_names nodes -l gpushare=true)' -d node
complete -c $prog -n '__gpushare_command show' -s d -l details -d 'pods per GPU'
complete -c $prog -n '__gpushare_command show; or __gpushare_command pods; or __gpushare_command why' -s o -l output -x -a 'table wide json yaml csv' -d format
complete -c $prog -n '__gpushare_command show; or __gpushare_command pods; or __gpushare_command why' -l columns -x -d 'only these columns'
complete -c $prog -n '__gpushare_command why' -l all -d 'one row for each pod'
complete -c $prog -n '__gpushare_command show; or __gpushare_command map' -s l -l selector -x -d 'only nodes with matching labels'
complete -c $prog -n '__gpushare_command show; or __gpushare_command map' -l sort -x -a 'name free allocated largest stranded pods' -d order

complete -c $prog -n '__gpushare_command show; or __gpushare_command map; or __gpushare_command why; or __gpushare_command pods' -s A -l all-namespaces -d 'pods of all namespaces'
complete -c $prog -n '__gpushare_command map; or __gpushare_command defrag; or __gpushare_command what-if; or __gpushare_command doctor' -s o -l output -x -a 'text json yaml' -d format
complete -c $prog -n '__gpushare_command pods' -l by -x -a 'owner pod namespace node' -d 'what one line is about'
complete -c $prog -n '__gpushare_command pods' -l over-request -d 'only pods over their request'
complete -c $prog -n '__gpushare_command doctor' -l strict -d 'exit code 1 also for warnings'
complete -c $prog -n '__gpushare_command why' -a '(__gpushare_names pods)' -d pod

complete -c $prog -n '__gpushare_command what-if' -s m -l gpu-mem -x -d 'units on each GPU'
complete -c $prog -n '__gpushare_command what-if' -s f -l filename -r -F -d 'pods of a manifest'
complete -c $prog -n '__gpushare_command what-if' -l add-node -x -a '(__gpushare_names nodes -l gpushare=true)' -d 'assume more nodes like it'
complete -c $prog -n '__gpushare_command what-if' -l without-node -x -a '(__gpushare_names nodes -l gpushare=true)' -d 'assume that it is drained'
complete -c $prog -n '__gpushare_command what-if' -l until-fit -d 'find the number of nodes with which all start'
complete -c $prog -n '__gpushare_command what-if' -l pending -d 'report which pending pods would start'
complete -c $prog -n '__gpushare_command what-if' -l ignore-pending -d 'ignore pending pods'
complete -c $prog -n '__gpushare_command what-if' -s c -l gpu-count -x -d 'GPUs per pod'
complete -c $prog -n '__gpushare_command what-if' -l gpu-core -x -d 'percent of one GPU\'s compute per pod'
complete -c $prog -n '__gpushare_command what-if' -s r -l replicas -x -d 'number of pods'
complete -c $prog -n '__gpushare_command what-if' -l gpu-model -x -d 'only these models'
complete -c $prog -n '__gpushare_command what-if' -l policy -x -a 'binpack spread rollout' -d placement

complete -c $prog -n '__gpushare_command snapshot' -F

complete -c $prog -n '__gpushare_command defrag' -l gpu-mem -x -d 'make room for a pod of this size'
complete -c $prog -n '__gpushare_command defrag' -l max-moves -x -d 'maximum number of pods to move'
complete -c $prog -n '__gpushare_command defrag' -l policy -x -a 'binpack spread rollout' -d placement
complete -c $prog -n '__gpushare_command web' -l listen -x -d 'address of this machine'
complete -c $prog -n '__gpushare_command web' -l no-token -d 'no token in the URL'

complete -c $prog -n '__gpushare_command show; or __gpushare_command pods' -l timeout -x -d 'time limit for all device plugins'
complete -c $prog -n '__gpushare_command show; or __gpushare_command why; or __gpushare_command pods; or __gpushare_command web; or __gpushare_command doctor' -l system-namespace -x -a '(__gpushare_names namespaces)' -d 'namespace of extender and device plugin'
complete -c $prog -n '__gpushare_command doctor' -l scheduler-config -r -F -d "kube-scheduler's file"
