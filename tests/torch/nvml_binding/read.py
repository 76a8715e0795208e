"""Prints, as JSON, what NVIDIA's own binding reads through the GPU library that the dynamic loader finds first."""

import json
import time

import pynvml as n


def answer(call, *arguments):
    """Returns the result of a call, or the number of its error."""
    try:
        value = call(*arguments)
    except n.NVMLError as error:
        return {"error": error.value}
    return value.decode() if isinstance(value, bytes) else value


def fields(device, wanted):
    values = n.nvmlDeviceGetFieldValues(device, wanted)
    kinds = {n.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal", n.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal"}
    return [
        {"error": value.nvmlReturn} if value.nvmlReturn else getattr(value.value, kinds[value.valueType])
        for value in values
    ]


def counters(device, ids):
    """Returns the counters between two samples, taken as NVIDIA's own programs take them."""
    one, other = n.nvmlGpmSampleAlloc(), n.nvmlGpmSampleAlloc()
    n.nvmlGpmSampleGet(device, one)
    time.sleep(0.15)
    n.nvmlGpmSampleGet(device, other)
    request = n.c_nvmlGpmMetricsGet_t()
    request.version = n.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics = len(ids)
    request.sample1, request.sample2 = one, other
    for place, metric in enumerate(ids):
        request.metrics[place].metricId = metric
    n.nvmlGpmMetricsGet(request)
    found = [request.metrics[place] for place in range(len(ids))]
    found = [{"error": metric.nvmlReturn} if metric.nvmlReturn else round(metric.value, 3) for metric in found]
    n.nvmlGpmSampleFree(one)
    n.nvmlGpmSampleFree(other)
    return found


def xid(device):
    events = n.nvmlEventSetCreate()
    n.nvmlDeviceRegisterEvents(device, n.nvmlEventTypeXidCriticalError, events)
    event = n.nvmlEventSetWait_v2(events, 0)
    again = answer(n.nvmlEventSetWait_v2, events, 0)
    n.nvmlEventSetFree(events)
    return {"number": event.eventData, "type": event.eventType, "again": again}


def instance(device):
    mig = n.nvmlDeviceGetMigDeviceHandleByIndex(device, 0)
    memory = n.nvmlDeviceGetMemoryInfo(mig)
    return {
        "uuid": n.nvmlDeviceGetUUID(mig),
        "gi": n.nvmlDeviceGetGpuInstanceId(mig),
        "ci": n.nvmlDeviceGetComputeInstanceId(mig),
        "total": memory.total,
        "used": memory.used,
        "util": answer(n.nvmlDeviceGetUtilizationRates, mig),
        "next": answer(n.nvmlDeviceGetMigDeviceHandleByIndex, device, 1),
    }


n.nvmlInit()
first, divided = (n.nvmlDeviceGetHandleByIndex(place) for place in (0, 1))
util = n.nvmlDeviceGetUtilizationRates(first)
memory = n.nvmlDeviceGetMemoryInfo(first, version=n.nvmlMemory_v2)
kind, samples = n.nvmlDeviceGetSamples(first, n.NVML_GPU_UTILIZATION_SAMPLES, 0)
processes = n.nvmlDeviceGetComputeRunningProcesses(first)
shares = n.nvmlDeviceGetProcessUtilization(first, 0)
ALL = 0xFFFFFFFF
print(
    json.dumps(
        {
            "count": n.nvmlDeviceGetCount(),
            "driver": n.nvmlSystemGetDriverVersion(),
            "name": n.nvmlDeviceGetName(first),
            "uuid": n.nvmlDeviceGetUUID(first),
            "minor": n.nvmlDeviceGetMinorNumber(first),
            "util": [util.gpu, util.memory],
            "memory": [memory.total, memory.reserved, memory.used],
            "power": n.nvmlDeviceGetPowerUsage(first),
            "limit": n.nvmlDeviceGetEnforcedPowerLimit(first),
            "energy": n.nvmlDeviceGetTotalEnergyConsumption(first),
            "temperature": n.nvmlDeviceGetTemperature(first, n.NVML_TEMPERATURE_GPU),
            "clocks": [
                n.nvmlDeviceGetClockInfo(first, n.NVML_CLOCK_SM),
                n.nvmlDeviceGetClockInfo(first, n.NVML_CLOCK_MEM),
            ],
            "throttle": n.nvmlDeviceGetCurrentClocksEventReasons(first),
            "link": [n.nvmlDeviceGetCurrPcieLinkGeneration(first), n.nvmlDeviceGetMaxPcieLinkWidth(first)],
            "pcie": [
                n.nvmlDeviceGetPcieThroughput(first, n.NVML_PCIE_UTIL_TX_BYTES),
                n.nvmlDeviceGetPcieThroughput(first, n.NVML_PCIE_UTIL_RX_BYTES),
            ],
            "video": [n.nvmlDeviceGetEncoderUtilization(first)[0], n.nvmlDeviceGetDecoderUtilization(first)[0]],
            "persistence": n.nvmlDeviceGetPersistenceMode(first),
            "ecc": [
                n.nvmlDeviceGetTotalEccErrors(first, kind_of_error, n.NVML_VOLATILE_ECC)
                for kind_of_error in (n.NVML_MEMORY_ERROR_TYPE_CORRECTED, n.NVML_MEMORY_ERROR_TYPE_UNCORRECTED)
            ],
            "remapped": n.nvmlDeviceGetRemappedRows(first),
            "fields": fields(
                first,
                [
                    n.NVML_FI_DEV_POWER_INSTANT,
                    n.NVML_FI_DEV_MEMORY_TEMP,
                    (n.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL),
                    (n.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 0),
                    n.NVML_FI_DEV_REMAPPED_UNC,
                    n.NVML_FI_DEV_RETIRED_DBE,
                ],
            ),
            "samples": [kind, len(samples), samples[-1].sampleValue.uiVal],
            "processes": [[process.pid, process.usedGpuMemory] for process in processes],
            "shares": [[share.pid, share.smUtil, share.memUtil] for share in shares],
            "gpm_supported": [
                n.nvmlGpmQueryDeviceSupport(device).isSupportedDevice for device in (first, divided)
            ],
            "gpm": counters(first, [2, 10, 20, 5]),
            "xid": xid(first),
            "divided": [n.nvmlDeviceGetMigMode(divided)[0], answer(n.nvmlDeviceGetUtilizationRates, divided)],
            "instance": instance(divided),
        }
    )
)
