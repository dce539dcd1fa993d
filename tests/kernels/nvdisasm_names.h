/* For nvdisasm_oracle.c alone: rows of the decoder's table that nvdisasm knows by another name. */
#ifndef CUCONST_TESTS_NVDISASM_NAMES_H
#define CUCONST_TESTS_NVDISASM_NAMES_H

static const struct {
	const char *row, *name;
} other_names[] = {
	{"046", "VIADDMNMX"}, {"11b", "ENDCOLLECTIVE"}, {"RED", "REDG"},        {"ERRBAR", "CGAERRBAR"},
	{"1c6", "FENCE"},     {"11c", "B2R"},           {"CSMTEST", "ACQBULK"}, {"PMTRIG", "PREEXIT"},
	{"UF*", "UI2FP"},     {"ICMP", "VIMNMX3"},      {"076", "FMNMX3"},
};

#endif
