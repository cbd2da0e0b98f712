/** What starts the pages?  Theme first, then queries and routes. */

import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createQueryClient } from "./api/queryClient";
import "./base.css";
import { applyTheme, chosenTheme } from "./lib/theme";
import { createAppRouter } from "./router";

applyTheme(chosenTheme());
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
const queries = createQueryClient();
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={createAppRouter(queries)} />
    </QueryClientProvider>
  </StrictMode>,
);
