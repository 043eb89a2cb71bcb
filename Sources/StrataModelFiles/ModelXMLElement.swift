/// One element of a model's XML.
package final class ModelXMLElement {
    package let name: String
    package let line: Int
    package private(set) var children: [ModelXMLElement] = []
    /// The text in the element, if the form of the file has text.
    package private(set) var content = ""
    package let attributes: [String: String]

    init(name: String, attributes: [String: String], line: Int) {
        self.name = name
        self.attributes = attributes
        self.line = line
    }

    /// The attribute's text; `nil` if it is missing.
    package subscript(_ attribute: String) -> String? { attributes[attribute] }

    /// The attribute's text; `nil` if it is missing or empty.
    package func text(_ attribute: String) -> String? {
        attributes[attribute].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Whether the attribute is `YES` (or `true`, or 1).
    package func flag(_ attribute: String, default value: Bool = false) -> Bool {
        guard let text = attributes[attribute]?.uppercased() else { return value }
        return ["YES", "TRUE", "1"].contains(text)
    }

    /// The children with a name.
    package func children(_ name: String) -> [ModelXMLElement] {
        children.filter { $0.name == name }
    }

    func append(_ child: ModelXMLElement) {
        children.append(child)
    }

    func append(text: String) {
        content += text
    }
}
