/** How often a property is tried: `npm run test:load` has it tried many times as often, with what it draws at random. */
export const propertyRuns = (few: number): number => few * Number(process.env.PROPERTY_FACTOR ?? 1);
