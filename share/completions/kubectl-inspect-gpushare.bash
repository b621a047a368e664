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
    local common='--kubeconfig --context --namespace --domain --request-timeout --help --version'
    (($# > 1)) && before=${*: -2:1}
    # what was said about the cluster and the namespace holds for what is offered, too
    [[ " $all " =~ \ (-n|--namespace)[\ =]([^ ]+)\  ]] && where+=(-n "${BASH_REMATCH[2]}")
    [[ " $all " =~ \ --kubeconfig[\ =]([^ ]+)\  ]] && where+=(--kubeconfig "${BASH_REMATCH[1]}")
    [[ " $all " =~ \ --context[\ =]([^ ]+)\  ]] && where+=(--context "${BASH_REMATCH[1]}")
    for word in "${@:1:$#-1}"; do
        case $word in
        show | map | stranded | limits | why | what-if | usage | snapshot | defrag | nodeoverlay | web | doctor) [[ -n $command ]] || command=$word ;;
        esac
    done
    case $before in
    -o | --output)
        [[ $command == @(why|map|limits|what-if|usage|defrag|doctor|snapshot) ]] && echo 'text json yaml' && return
        echo 'table wide json yaml' && return
        ;;
    --sort) echo 'name free used largest stranded pods' && return ;;
    --by) echo 'owner pod' && return ;;
    --policy) echo 'binpack spread fgd rollout' && return ;;
    --free-node) kubectl "${where[@]}" get nodes -l gpushare=true -o name 2>/dev/null | sed 's|.*/||' && return ;;
    --context) kubectl config get-contexts -o name 2>/dev/null && return ;;
    -n | --namespace | --system-namespace) kubectl "${where[@]}" get namespaces -o name 2>/dev/null | sed 's|.*/||' && return ;;
    --add-node | --without-node)
        kubectl "${where[@]}" get nodes -l gpushare=true -o name 2>/dev/null | sed 's|.*/||'
        return
        ;;
    --kubeconfig | --config | --scheduler-config | -f | --filename) compgen -f -- "$last" && return ;;
    esac
    case $command in
    why)
        [[ $last == -* ]] && echo "--output --watch --all-namespaces --system-namespace $common" && return
        kubectl "${where[@]}" get pods -o name 2>/dev/null | sed 's|.*/||'
        ;;
    what-if)
        echo "--gpu-mem --gpu-count --gpu-core --replicas --gpu-model --policy --filename --add-node" \
            "--until-fit --without-node --waiting --ignore-waiting --system-namespace --output $common"
        ;;
    usage)
        [[ $last == -* ]] && echo "--by --output --all-namespaces --system-namespace --timeout $common" && return
        kubectl "${where[@]}" get nodes -l gpushare=true -o name 2>/dev/null | sed 's|.*/||'
        ;;
    snapshot)
        [[ $last == -* ]] && echo "--hash-names --diff --output $common" && return
        compgen -f -- "$last"
        ;;
    defrag) echo "--free-node --max-moves --policy --output $common" ;;
    nodeoverlay) echo "--type --selector $common" ;;
    web) echo "--listen --no-token --system-namespace $common" ;;
    doctor)
        echo "--system-namespace --scheduler-config --extender --extender-ca --extender-cert" \
            "--extender-key --extender-server-name --strict --output $common"
        ;;
    *)
        if [[ $last == -* && $command == map ]]; then
            echo "--watch --selector --sort --all-namespaces $common"
        elif [[ $last == -* ]]; then
            echo "--details --output --watch --selector --sort --all-namespaces --system-namespace" \
                "--timeout $common"
        else
            [[ -n $command ]] || echo 'show map stranded limits why what-if usage snapshot defrag nodeoverlay web doctor'
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
