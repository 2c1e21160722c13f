// The one place that knows which libraries draw the pages.
export {
  html, render, h, useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useErrorBoundary,
} from "../vendor/preact-htm.js";
export { hierarchy, tree as tidyTree } from "../vendor/d3-hierarchy.js";
