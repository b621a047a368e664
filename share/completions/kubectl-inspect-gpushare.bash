# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# bash completion for kubectl-inspect-gpushare. Install as
# /usr/share/bash-completion/completions/kubectl-inspect-gpushare. For `kubectl inspect gpushare`
# itself see kubectl_complete-inspect-gpushare beside this file.

# Prints the candidates for the last word: words of the command line behind the program's name.
_gpushare_candidates() {
    local last=${*: -1} before='' command='' word all=${*:1:$#-1}
    local -a where=()
    local common='--kubeconfig --context --cluster --user --as --as-group --as-uid --server --from-file --domain --request-timeout --help --version'
    (($# > 1)) && before=${*: -2:1}
    # options for cluster and namespace apply to the candidates, too
    [[ " $all " =~ \ (-n|--namespace)[\ =]([^ ]+)\  ]] && where+=(-n "${BASH_REMATCH[2]}")
    [[ " $all " =~ \ --kubeconfig[\ =]([^ ]+)\  ]] && where+=(--kubeconfig "${BASH_REMATCH[1]}")
    [[ " $all " =~ \ --context[\ =]([^ ]+)\  ]] && where+=(--context "${BASH_REMATCH[1]}")
    for word in "${@:1:$#-1}"; do
        case $word in
        show | map | pods | why | what-if | snapshot | defrag | web | doctor) [[ -n $command ]] || command=$word ;;
        esac
    done
    case $before in
    -o | --output)
        [[ $command == @(map|what-if|defrag|doctor) ]] && echo 'text json yaml' && return
        echo 'table wide json yaml csv' && return
        ;;
    --sort)
        [[ $command == pods ]] && echo 'excess unused request used peak name' && return
        [[ $command == why ]] && echo 'units created namespace pod' && return
        echo 'name free allocated largest stranded pods' && return
        ;;
    --by) echo 'owner pod namespace node' && return ;;
    --policy) echo 'binpack spread rollout' && return ;;
    --context) kubectl config get-contexts -o name 2>/dev/null && return ;;
    -n | --namespace | --system-namespace) kubectl "${where[@]}" get namespaces -o name 2>/dev/null | sed 's|.*/||' && return ;;
    --add-node | --without-node)
        kubectl "${where[@]}" get nodes -l gpushare=true -o name 2>/dev/null | sed 's|.*/||'
        return
        ;;
    --kubeconfig | --from-file | --config | --scheduler-config | -f | --filename) compgen -f -- "$last" && return ;;
    esac
    case $command in
    why)
        [[ $last == -* ]] && echo "--all --columns --sort --output --namespace --all-namespaces --system-namespace $common" && return
        kubectl "${where[@]}" get pods -o name 2>/dev/null | sed 's|.*/||'
        ;;
    what-if)
        echo "--gpu-mem --gpu-count --gpu-core --replicas --gpu-model --policy --filename --add-node" \
            "--until-fit --without-node --pending --ignore-pending --system-namespace --output $common"
        ;;
    pods)
        [[ $last == -* ]] && echo "--by --over-request --sort --columns --selector --output --namespace --all-namespaces --system-namespace --timeout $common" && return
        kubectl "${where[@]}" get nodes -l gpushare=true -o name 2>/dev/null | sed 's|.*/||'
        ;;
    snapshot)
        [[ $last == -* ]] && echo "$common" && return
        compgen -f -- "$last"
        ;;
    defrag) echo "--gpu-mem --max-moves --policy --output $common" ;;
    web) echo "--listen --no-token --namespace --system-namespace $common" ;;
    doctor)
        echo "--namespace --system-namespace --scheduler-config --strict --output $common"
        ;;
    *)
        if [[ $last == -* && $command == map ]]; then
            echo "--selector --sort --namespace --all-namespaces $common"
        elif [[ $last == -* ]]; then
            echo "--details --columns --output --selector --sort --namespace --all-namespaces" \
                "--system-namespace --timeout $common"
        else
            [[ -n $command ]] || echo 'show map pods why what-if snapshot defrag web doctor'
            kubectl "${where[@]}" get nodes -l gpushare=true -o name 2>/dev/null | sed 's|.*/||'
        fi
        ;;
    esac
}

_kubectl_inspect_gpushare() {
    local last=${COMP_WORDS[COMP_CWORD]}
    mapfile -t COMPREPLY < <(compgen -W "$(_gpushare_candidates \
        "${COMP_WORDS[@]:1:COMP_CWORD}")" -- "$last")
}

complete -F _kubectl_inspect_gpushare kubectl-inspect-gpushare
