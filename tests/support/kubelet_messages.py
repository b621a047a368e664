# SPDX-License-Identifier: Apache-2.0
"""The messages of the kubelet's device plugin and PodResources APIs, for Python's protobuf, described
a second time from the APIs' field numbers: a wrong number in our .proto files shows against them."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

STRING, BOOL, INT64 = 9, 8, 3

# message: [(field, number, type or message, repeated)]
MESSAGES = {
    "Empty": [],
    "Options": [("pre_start", 1, BOOL, False), ("preferred", 2, BOOL, False)],
    "RegisterRequest": [
        ("version", 1, STRING, False),
        ("endpoint", 2, STRING, False),
        ("resource_name", 3, STRING, False),
        ("options", 4, "Options", False),
    ],
    "Node": [("id", 1, INT64, False)],
    "Topology": [("nodes", 1, "Node", True)],
    "Device": [("id", 1, STRING, False), ("health", 2, STRING, False),
               ("topology", 3, "Topology", False)],
    "List": [("devices", 1, "Device", True)],
    "Ids": [("ids", 1, STRING, True)],
    "AllocateRequest": [("containers", 1, "Ids", True)],
    "Pair": [("key", 1, STRING, False), ("value", 2, STRING, False)],
    "Cdi": [("name", 1, STRING, False)],
    "ContainerAnswer": [("envs", 1, "Pair", True), ("annotations", 4, "Pair", True),
                        ("cdi", 5, "Cdi", True)],
    "AllocateAnswer": [("containers", 1, "ContainerAnswer", True)],
    "PodDevices": [("resource", 1, STRING, False), ("ids", 2, STRING, True),
                   ("topology", 3, "Topology", False)],
    "PodContainer": [("name", 1, STRING, False), ("devices", 2, "PodDevices", True),
                     ("cpu_ids", 3, INT64, True)],
    "Pod": [("name", 1, STRING, False), ("namespace", 2, STRING, False),
            ("containers", 3, "PodContainer", True), ("cpu_ids", 4, INT64, True)],
    "PodList": [("pods", 1, "Pod", True)],
}


def make_messages():
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            added = message.field.add(name=field, number=number, label=3 if repeated else 1)
            if isinstance(kind, str):
                added.type, added.type_name = 11, ".t." + kind
            else:
                added.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName("t." + n))
            for n in MESSAGES}


M = make_messages()
