/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "../api.h"

G_BEGIN_DECLS

#define RUNNEL_TYPE_ENERGY_METER (runnel_energy_meter_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelEnergyMeter, runnel_energy_meter, RUNNEL, ENERGY_METER, GObject)

/**
 * RunnelEnergyMeter:
 *
 * The energy that the machine has used since the meter was made, by the best
 * sensor that Linux shows: powercap counters (RAPL), else a discharging
 * battery, else hwmon. It measures the machine and not the process. Safe to
 * use from several threads.
 *
 * Since: 0.1
 */

RUNNEL_API RunnelEnergyMeter *runnel_energy_meter_new (const char *sysfs,
                                                       GError **error);
RUNNEL_API const char *runnel_energy_meter_get_source (RunnelEnergyMeter *self);
RUNNEL_API double runnel_energy_meter_read (RunnelEnergyMeter *self);

G_END_DECLS
