import StrataPredicates

/// One element of a model's XML.
final class ModelXMLElement {
    let name: String
    let line: Int
    private(set) var children: [ModelXMLElement] = []
    /// The text in the element, where the form of the file has some.
    private(set) var content = ""
    private let attributes: [String: String]

    init(name: String, attributes: [String: String], line: Int) {
        self.name = name
        self.attributes = attributes
        self.line = line
    }

    /// The attribute's text; `nil` when it is missing.
    subscript(_ attribute: String) -> String? { attributes[attribute] }

    /// The attribute's text; `nil` when it is missing or empty.
    func text(_ attribute: String) -> String? {
        attributes[attribute].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Whether the attribute says `YES` (or `true`, or 1).
    func flag(_ attribute: String, default value: Bool = false) -> Bool {
        guard let text = attributes[attribute]?.uppercased() else { return value }
        return ["YES", "TRUE", "1"].contains(text)
    }

    /// The children with a name.
    func children(_ name: String) -> [ModelXMLElement] {
        children.filter { $0.name == name }
    }

    func append(_ child: ModelXMLElement) {
        children.append(child)
    }

    func append(text: String) {
        content += text
    }
}
