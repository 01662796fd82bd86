import type { components } from "./schema";

type Schemas = components["schemas"];

export type Memory = Schemas["MemoryView"];
export type MemoryPage = Schemas["MemoryPage"];
export type Facets = Schemas["FacetsView"];
export type Facet = Schemas["FacetView"];
export type Hit = Schemas["HitView"];
export type SearchInput = Schemas["SearchInput"];
export type SearchAnswer = Schemas["SearchView"];
export type Filters = Schemas["FiltersInput"];
export type Degraded = Schemas["DegradedView"];
export type Source = Schemas["SourceView"];
export type Rating = Schemas["RatingView"];
export type Rated = Schemas["RatedView"];
export type MemoryUses = Schemas["MemoryUsesView"];
export type Changed = Schemas["ChangedView"];
export type Candidate = Schemas["CandidateView"];
export type Problem = Schemas["Problem"];
