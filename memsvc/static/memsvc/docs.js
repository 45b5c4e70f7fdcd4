// A file of its own, because the content security policy lets no script stand in the page.
SwaggerUIBundle({
  dom_id: "#docs",
  url: document.getElementById("docs").dataset.description,
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: -1,
  validatorUrl: null,
});
