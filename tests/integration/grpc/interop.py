# SPDX-License-Identifier: Apache-2.0
"""Another gRPC implementation (grpcio, the C core) plays the kubelet for grpc_peer.

The messages are those of tests/support/kubelet_messages.py. Run by interop.sh.
"""

import os
import queue
import subprocess
import tempfile
import threading
import time
import unittest
from concurrent import futures

import grpc
from kubelet_messages import M

PLUGIN = "/v1beta1.DevicePlugin/"


class Peer:
    """A grpc_peer process."""

    def __init__(self, folder):
        self.process = subprocess.Popen([os.environ["GS_PEER"], folder], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))

    def expect(self, start, timeout=15):
        """The next line that starts so; others are passed over."""
        end = time.monotonic() + timeout
        seen = []
        while True:
            try:
                line = self.lines.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError("no line \"%s\", only %s" % (start, seen)) from None
            if line.startswith(start):
                return line
            seen.append(line)

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def stop(self):
        if self.process.poll() is None:
            self.tell("quit")
        code = self.process.wait(10)
        self.process.stdin.close()
        self.process.stdout.close()
        return code


class Kubelet:
    """Registration on kubelet.sock."""

    def __init__(self, folder, calls_back):
        self.folder = folder
        self.calls_back = calls_back
        self.requests = []
        self.options = []
        self.server = grpc.server(futures.ThreadPoolExecutor(4),
                                  options=[("grpc.max_send_message_length", -1)])
        unary = grpc.unary_unary_rpc_method_handler
        self.server.add_generic_rpc_handlers((
            grpc.method_handlers_generic_handler("v1beta1.Registration", {
                "Register": unary(self.register, M["RegisterRequest"].FromString,
                                  M["Empty"].SerializeToString)}),
        ))
        self.server.add_insecure_port("unix:" + folder + "/kubelet.sock")
        self.server.start()

    def register(self, request, context):
        self.requests.append(request)
        if self.calls_back:  # newer kubelets ask before they answer
            with channel_to(self.folder) as channel:
                self.options.append(unary_call(channel, "GetDevicePluginOptions", "Options")(
                    M["Empty"](), timeout=5))
        return M["Empty"]()

    def stop(self):
        self.server.stop(0).wait()


def channel_to(folder, **options):
    return grpc.insecure_channel("unix:" + folder + "/peer.sock",
                                 options=[("grpc." + k, v) for k, v in options.items()])


def unary_call(channel, method, answer):
    return channel.unary_unary(PLUGIN + method, request_serializer=lambda m: m.SerializeToString(),
                               response_deserializer=M[answer].FromString)


def watch(channel):
    return channel.unary_stream(PLUGIN + "ListAndWatch",
                                request_serializer=M["Empty"].SerializeToString,
                                response_deserializer=M["List"].FromString)(M["Empty"]())


def ids(*names):
    return M["AllocateRequest"](containers=[M["Ids"](ids=names)])


class Interop(unittest.TestCase):
    calls_back = True

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gs-interop-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.kubelet = Kubelet(self.folder, self.calls_back)
        self.addCleanup(lambda: self.kubelet.stop())
        self.peer = Peer(self.folder)
        self.addCleanup(self.stop_peer)
        self.peer.expect("listening")
        self.peer.expect("registered")
        self.channel = channel_to(self.folder)
        self.addCleanup(self.channel.close)
        self.allocate = unary_call(self.channel, "Allocate", "AllocateAnswer")
        self.pre_start = unary_call(self.channel, "PreStartContainer", "Empty")

    def stop_peer(self):
        self.assertEqual(self.peer.stop(), 0)

    def assert_fails(self, code, call, *args, **kwargs):
        with self.assertRaises(grpc.RpcError) as caught:
            call(*args, **kwargs)
        self.assertEqual(caught.exception.code(), code)
        return caught.exception.details()

    def assert_serves(self):
        answer = self.allocate(ids("x", "y"), timeout=5)
        self.assertEqual(len(answer.containers), 1)
        return answer.containers[0]


class Registration(Interop):
    def test_a_kubelet_that_calls_back_first_gets_its_options(self):
        request, options = self.kubelet.requests[0], self.kubelet.options[0]
        self.assertEqual(request.version, "v1beta1")
        self.assertEqual(request.endpoint, "peer.sock")
        self.assertEqual(request.resource_name, "test/units")
        self.assertEqual(request.options, options)
        self.assertTrue(options.pre_start)
        self.assertFalse(options.preferred)

    def test_a_restarted_kubelet_is_registered_with_again(self):
        self.kubelet.stop()
        for name in ("kubelet.sock", "peer.sock"):  # the latter by a starting kubelet 1.20
            if os.path.exists(self.folder + "/" + name):
                os.unlink(self.folder + "/" + name)
        self.kubelet = Kubelet(self.folder, True)
        self.peer.expect("registered")
        with channel_to(self.folder) as channel:
            unary_call(channel, "GetDevicePluginOptions", "Options")(M["Empty"](), timeout=5)

    def test_a_second_copy_refuses_and_harms_nothing(self):
        second = Peer(self.folder)
        self.assertIn("another process serves", second.expect("stopped"))
        self.assertEqual(second.stop(), 1)
        self.assert_serves()


class OldRegistration(Interop):
    calls_back = False

    def test_a_kubelet_that_answers_at_once(self):
        self.assertEqual(len(self.kubelet.requests), 1)
        self.assertTrue(self.kubelet.requests[0].options.pre_start)
        self.assert_serves()


class Lists(Interop):
    def test_a_list_of_two_megabytes(self):
        self.peer.tell("devices 65000 65000")
        self.peer.expect("devices")
        stream = watch(self.channel)
        devices = next(stream).devices
        self.assertEqual(len(devices), 65000)
        self.assertEqual(devices[64999].id, "unit-0064999-abcdefg")
        self.assertEqual(len({d.id for d in devices}), 65000)
        self.assertEqual({d.health for d in devices}, {"Healthy"})
        stream.cancel()

    def test_the_largest_list_fits_the_default_limit_and_one_more_is_refused(self):
        # 33 bytes each: 127,100 devices are 4,194,300 bytes.
        self.peer.tell("devices 127100 127100")
        self.peer.expect("devices")
        stream = watch(self.channel)
        self.assertEqual(len(next(stream).devices), 127100)
        self.peer.tell("devices 127101 127101")
        self.assertIn("4194304", self.peer.expect("devices-failed"))
        stream.cancel()

    def test_updates_reach_every_stream(self):
        other = channel_to(self.folder, default_authority="second")
        self.addCleanup(other.close)
        streams = [watch(self.channel), watch(self.channel), watch(other)]
        for stream in streams:
            self.assertEqual(len(next(stream).devices), 10)
        self.peer.tell("devices 3 2")
        for stream in streams:
            self.assertEqual([d.health for d in next(stream).devices],
                             ["Healthy", "Healthy", "Unhealthy"])
        streams[0].cancel()
        self.peer.tell("devices 4 4")
        for stream in streams[1:]:
            self.assertEqual(len(next(stream).devices), 4)
            stream.cancel()


class Calls(Interop):
    def test_the_socket_path_as_authority(self):
        path = self.folder + "/peer.sock"
        with channel_to(self.folder, default_authority=path) as channel:
            answer = unary_call(channel, "Allocate", "AllocateAnswer")(ids("x"), timeout=5)
        self.assertEqual(answer.containers[0].envs[0].value, "x")

    def test_allocate_answers_with_everything(self):
        container = self.assert_serves()
        self.assertEqual({p.key: p.value for p in container.envs}, {"IDS": "x,y", "EMPTY": ""})
        self.assertEqual({p.key: p.value for p in container.annotations},
                         {"test/annotation": "yes"})
        self.assertEqual([c.name for c in container.cdi], ["example.com/gpu=0"])
        self.assertEqual([(m.host, m.container, m.read_only) for m in container.mounts],
                         [("/on/host", "/in/container", False)])
        self.assertEqual([(d.host, d.container, d.permissions) for d in container.devices],
                         [("/dev/host", "/dev/container", "rw")])

    def test_allocate_of_many_ids(self):
        names = ["unit-%07d-abcdefg" % i for i in range(65000)]
        answer = self.allocate(ids(*names), timeout=30)
        self.assertEqual(answer.containers[0].envs[0].value, ",".join(names))

    def test_a_request_above_the_ceiling(self):
        names = ["unit-%07d-abcdefg" % i for i in range(200000)]
        self.assert_fails(grpc.StatusCode.RESOURCE_EXHAUSTED, self.allocate, ids(*names),
                          timeout=30)
        self.assert_serves()

    def test_error_texts_survive(self):
        text = "GPU 3 is at 100% of its M\u00e4chtigkeit %41 \ufffd"
        for call, request in ((self.allocate, ids("fail")),
                              (self.pre_start, M["Ids"](ids=["fail"]))):
            self.assertEqual(
                self.assert_fails(grpc.StatusCode.FAILED_PRECONDITION, call, request, timeout=5),
                text)

    def test_an_answer_from_another_thread(self):
        slow = [self.allocate.future(ids("slow"), timeout=5) for _ in range(10)]
        self.assert_serves()  # meanwhile
        for future in slow:
            self.assertEqual(len(future.result().containers), 1)

    def test_pre_start_out_of_time(self):
        self.assert_fails(grpc.StatusCode.DEADLINE_EXCEEDED, self.pre_start,
                          M["Ids"](ids=["late"]), timeout=0.3)
        self.peer.expect("held pre_start")
        self.peer.tell("answer")
        self.peer.expect("answered")
        self.pre_start(M["Ids"](ids=["x"]), timeout=5)

    def test_cancelled_calls(self):
        for call, request, held in ((self.allocate, ids("late"), "held allocate"),
                                    (self.pre_start, M["Ids"](ids=["late"]), "held pre_start")):
            future = call.future(request)
            self.peer.expect(held)
            future.cancel()
            self.peer.tell("answer")
            self.peer.expect("answered")
        self.assert_serves()

    def test_a_client_that_vanishes(self):
        channel = channel_to(self.folder, default_authority="gone")
        future = unary_call(channel, "Allocate", "AllocateAnswer").future(ids("late"))
        self.peer.expect("held allocate")
        channel.close()
        self.peer.tell("answer")
        self.peer.expect("answered")
        self.assertEqual(future.code(), grpc.StatusCode.CANCELLED)
        self.assert_serves()

    def test_methods_that_are_not_offered(self):
        for method in ("GetPreferredAllocation", "Nonsense"):
            self.assert_fails(grpc.StatusCode.UNIMPLEMENTED,
                              unary_call(self.channel, method, "Empty"), M["Empty"](), timeout=5)

    def test_compressed_requests(self):
        request = ids(*["unit"] * 1000)
        self.assert_fails(grpc.StatusCode.UNIMPLEMENTED, self.allocate, request, timeout=5,
                          compression=grpc.Compression.Gzip)
        self.assert_serves()

    def test_many_calls_at_once(self):
        calls = [self.allocate.future(ids("x%d" % i), timeout=20) for i in range(500)]
        for i, call in enumerate(calls):
            self.assertEqual(call.result().containers[0].envs[0].value, "x%d" % i)


if __name__ == "__main__":
    unittest.main()
