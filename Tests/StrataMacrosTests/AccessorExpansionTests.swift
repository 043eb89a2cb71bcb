import Expectations
import Testing

@testable import StrataMacroExpansion

@Suite("Expansions of accessors")
struct AccessorExpansionTests {
    @Test(arguments: [
        ("@ManagedAccessor func addToPages(_ value: Page)", "addManagedMembers(value, to: \"pages\")"),
        ("@ManagedAccessor\npublic func addToPages(_ values: NSSet)", "addManagedMembers(values, to: \"pages\")"),
        ("@ManagedAccessor func addPages(_ values: NSSet)", "addManagedMembers(values, to: \"pages\")"),
        ("@ManagedAccessor func addTopics(_ values: NSSet)", "addManagedMembers(values, to: \"topics\")"),
        ("@ManagedAccessor func addPagesObject(_ value: Page)", "addManagedMembers(value, to: \"pages\")"),
        ("@ManagedAccessor func removePages(_ values: NSSet)", "removeManagedMembers(values, from: \"pages\")"),
        ("@ManagedAccessor func removePagesObject(_ v: Page)", "removeManagedMembers(v, from: \"pages\")"),
        ("@ManagedAccessor func removeFromTags(_ value: Set<Tag>)", "removeManagedMembers(value, from: \"tags\")"),
        ("@ManagedAccessor func removeFromPages(at idx: Int)", "removeManagedMembers(at: idx, from: \"pages\")"),
        (
            "@ManagedAccessor func insertIntoPages(_ value: Page, at idx: Int)",
            "insertManagedMembers(value, at: idx, into: \"pages\")"
        ),
        (
            "@ManagedAccessor func replacePages(at indexes: NSIndexSet, with values: [Page])",
            "replaceManagedMembers(at: indexes, with: values, of: \"pages\")"
        ),
        ("@CoreData.ManagedAccessor(\"x\") func addToY(_ v: Z)", "addManagedMembers(v, to: \"x\")"),
    ])
    func `a method becomes a call that changes its relationship`(_ source: String, _ call: String) {
        expectEqual(expand(source), Expansion(source: "{\n    \(call)\n}"))
    }

    @Test(arguments: [
        ("@ManagedAccessor var a: Int", "can only stand on a method", "@ManagedAccessor"),
        ("@ManagedAccessor static func addToPages(_ value: Page)", "not of the class", "static"),
        ("@ManagedAccessor func addToPages(_ value: Page) { }", "writes the body itself", "{ }"),
        ("@ManagedAccessor func addToPages(_ value: Page) -> Int", "return nothing", "->"),
        ("@ManagedAccessor func pages(_ value: Page)", "replacePages(at:with:)", "pages("),
        ("@ManagedAccessor func addToPages(value: Page)", "addToPages(_:)", "addToPages("),
        ("@ManagedAccessor func addToPages<T>(_ value: T)", "addToPages(_:)", "addToPages<"),
        ("@ManagedAccessor func addTo(_ value: Page)", "addToPages(_:)", "addTo("),
        ("@ManagedAccessor(name) func addToPages(_ v: Page)", "plain string literal", "name)"),
    ])
    func `a method that cannot be written is reported where it is wrong`(
        _ source: String,
        _ message: String,
        _ place: String
    ) throws {
        let expansion = expand(source)
        let diagnostic = try require(expansion.diagnostics.first)
        expect(expansion.source == nil && diagnostic.message.contains(message))
        let rest = String(decoding: Array(source.utf8)[diagnostic.range.lowerBound...], as: UTF8.self)
        expect(rest.hasPrefix(place))
    }

    private func expand(_ source: String) -> Expansion {
        ManagedAccessorMacro.expand(.sample("ManagedAccessorMacro", role: "body", source))
    }
}
